"""How to get in to a provider, in the order that users expect: a stored login, a borrowed one, a saved key."""

from collections.abc import AsyncGenerator, Mapping
from functools import partial

from msgspec import Struct, field

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import StoreError
from sylph.net.http import Client
from sylph.providers.credentials.entry import Entry, Kind
from sylph.providers.credentials.others import TOOLS, Tool
from sylph.providers.credentials.store import Store
from sylph.providers.endpoint import Login
from sylph.providers.logins import chatgpt, copilot
from sylph.providers.logins.borrowed import BorrowedLogin
from sylph.providers.logins.fresh import FreshLogin
from sylph.providers.logins.oauth import Service
from sylph.providers.logins.saved import SavedKey
from sylph.providers.logins.tokens import Tokens

RENEW = {"chatgpt": chatgpt.renew, "copilot": copilot.renew}


class Way(Struct, frozen=True, kw_only=True):
    """A way in. Nothing is read or reached before its login is asked for a token."""

    login: Login
    key_from: str
    """Where the key comes from, for people."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    base_url: str = ""


class Ways:
    """The ways in to every provider that one has credentials for."""

    def __init__(
        self,
        store: Store,
        client: Client,
        *,
        services: Mapping[str, Service],
        environ: Mapping[str, str],
        clock: Clock | None = None,
    ) -> None:
        self.store, self.services, self.environ = store, services, environ
        self._client, self._clock = client, clock or SystemClock()
        self._kinds = store.kinds()

    def __contains__(self, provider: str) -> bool:
        return provider in self._kinds

    def find(self, provider: str) -> Way | None:
        """The way in to a provider; None where it has no credential, or a damaged one."""
        kind = self._kinds.get(provider)
        if kind is None:
            return None
        try:
            entry = self.store.entry(provider, kind)
        except StoreError:
            entry = None
        return self._way(entry or Entry(provider=provider, kind=kind))

    def _way(self, entry: Entry) -> Way | None:
        told = told_of(entry)
        if entry.kind == "key":
            return Way(login=SavedKey(self.store, entry.provider), key_from=told)
        if entry.kind == "borrowed":
            tool = tool_named(entry.account)
            return self._borrowed(tool, entry, told) if tool else None
        service = self.services.get(entry.provider)
        if service is None:
            return None
        login = FreshLogin(self.store, entry.provider, partial(self._renew, service), clock=self._clock)
        headers = {**service.headers, **entry.headers}
        return Way(login=login, key_from=told, headers=headers, base_url=entry.base_url)

    def _borrowed(self, tool: Tool, entry: Entry, told: str) -> Way:
        login: Login = BorrowedLogin(tool, self.environ)
        headers = dict(entry.headers)
        if service := self.services.get(tool.provider):
            headers = {**service.headers, **headers}
            if service.exchange_url:
                login = copilot.Lent(service, self._client, login, self._clock)
        return Way(login=login, key_from=told, headers=headers, base_url=entry.base_url)

    def _renew(self, service: Service, tokens: Tokens) -> AsyncGenerator[Tokens, None]:
        return RENEW[service.name](service, self._client, tokens, self._clock)


def tool_named(name: str) -> Tool | None:
    return next((tool for tool in TOOLS if tool.name == name), None)


def told_of(entry: Entry) -> str:
    """Where a credential comes from, for people."""
    if entry.kind == "borrowed":
        tool = tool_named(entry.account)
        return f"the login of {tool.title if tool else entry.account}"
    where = {"keyring": "the system's keyring", "file": "Sylph's credentials"}[entry.place]
    sealed = ", sealed" if entry.sealed else ""
    what: dict[Kind, str] = {"key": "a saved key", "login": "a login", "borrowed": ""}
    return f"{what[entry.kind]} in {where}{sealed}"
