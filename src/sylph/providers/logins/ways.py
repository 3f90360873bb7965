"""How to get in to a provider, in the order that users expect: a stored login, a borrowed one, a saved key."""

from collections.abc import AsyncGenerator, Callable, Mapping, Set
from functools import cached_property, partial
from importlib import import_module
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import StoreError
from sylph.net.http import Client
from sylph.providers.credentials.entry import Entry
from sylph.providers.credentials.others import TOOLS, Tool
from sylph.providers.credentials.store import Store
from sylph.providers.endpoint import Login
from sylph.providers.logins.borrowed import BorrowedLogin
from sylph.providers.logins.fresh import FreshLogin
from sylph.providers.logins.oauth import Service
from sylph.providers.logins.saved import SavedKey
from sylph.providers.logins.tokens import Tokens

Opened = Callable[[str, str], None]
"""Hears of a secret that was just opened, with a name for it."""


def unheard(_: str, __: str) -> None:
    """Nobody has to know."""


class Way(Struct, frozen=True, kw_only=True):
    """A way in. Nothing is read or reached before its login is asked for a token."""

    login: Login | None
    key_from: str
    """Where the key comes from, for people."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    base_url: str = ""
    """Where the service is for this login, if not where it usually is."""
    only_for: str = ""
    """The address that a key was given for; it is sent to no other."""
    elsewhere: str = ""
    """That there is a key, but for another address."""
    bearer: bool = False
    """Whether it is a token where the service usually wants a key."""

    def sent_to(self, url: str) -> "Way":
        """The way to this address, which is none where the key was given for another."""
        if same_place(self.only_for, url):
            return self
        return Way(login=None, key_from="", elsewhere=f"{self.key_from} is for {self.only_for}")


def same_place(kept_for: str, url: str) -> bool:
    """Whether a key that was given for one address may be sent to the other."""
    return not kept_for or urlsplit(kept_for)[:2] == urlsplit(url)[:2]


class Watched:
    """A login whose tokens are told to whoever has to keep them secret, before they are given out."""

    def __init__(self, login: Login, name: str, opened: Opened) -> None:
        self._login, self._name, self._opened = login, name, opened

    async def token(self) -> str:
        return self._told(await self._login.token())

    async def renewed(self, stale: str) -> str:
        return self._told(await self._login.renewed(stale))

    @property
    def given(self) -> str:
        return self._login.given

    def _told(self, token: str) -> str:
        self._opened(token, self._name)
        return token


class Ways:
    """The ways in to every provider that one has credentials for."""

    def __init__(
        self,
        store: Store,
        client: Client,
        *,
        services: Callable[[], Mapping[str, Service]],
        environ: Mapping[str, str],
        opened: Opened = unheard,
        clock: Clock | None = None,
    ) -> None:
        self._opened = opened
        self.store, self._services, self.environ = store, services, environ
        self._client, self._clock = client, clock or SystemClock()
        self._kinds = store.kinds()

    def __contains__(self, provider: str) -> bool:
        return provider in self._kinds

    def find(self, provider: str) -> Way | None:
        """The way in to a provider; None where it has no credential, or a damaged one."""
        kind = self._kinds.get(provider)
        way = self._way(self._entry(provider) or Entry(provider=provider, kind=kind)) if kind else None
        return replace(way, login=Watched(way.login, f"{provider}-key", self._opened)) if way and way.login else way

    def _entry(self, provider: str) -> Entry | None:
        """What is known of it; nothing of a damaged one, which is told by whoever needs its secret."""
        try:
            return self.store.entry(provider, self._kinds[provider])
        except StoreError:
            return None

    def hush(self) -> None:
        """Nobody is asked for a passphrase any more."""
        self.store.hush()

    def unlock(self, providers: Set[str] = frozenset()) -> None:
        """Has the passphrase asked for, where a credential of these providers, or of any, is sealed with one."""
        wanted = [name for name in self._kinds if name in providers or not providers]
        if any(entry and entry.sealed for entry in map(self._entry, wanted)):
            self.store.key()

    @cached_property
    def services(self) -> Mapping[str, Service]:
        return self._services()

    def _way(self, entry: Entry) -> Way | None:
        told = told_of(entry)
        if entry.kind == "key":
            return Way(login=SavedKey(self.store, entry.provider), key_from=told, only_for=entry.base_url)
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
            from sylph.providers.logins.copilot import Lent

            headers = {**service.headers, **headers}
            if tool.provider == "copilot":
                login = Lent(service, self._client, login, self._clock)
        return Way(
            login=login, key_from=told, headers={**headers, **tool.headers}, base_url=entry.base_url, bearer=tool.bearer
        )

    def _renew(self, service: Service, tokens: Tokens) -> AsyncGenerator[Tokens, None]:
        """By the module of that name."""
        return import_module(f"sylph.providers.logins.{service.name}").renew(service, self._client, tokens, self._clock)


def tool_named(name: str) -> Tool | None:
    return next((tool for tool in TOOLS if tool.name == name), None)


def told_of(entry: Entry) -> str:
    """Where a credential comes from, for people."""
    if entry.kind == "borrowed":
        tool = tool_named(entry.account)
        return f"the login of {tool.title if tool else entry.account}"
    where = {"keyring": "the system's keyring", "file": "Sylph's credentials"}[entry.place]
    sealed = ", sealed" if entry.sealed else ""
    what = f"a saved key ({entry.tail})" if entry.kind == "key" else "a login"
    return f"{what} in {where}{sealed}"
