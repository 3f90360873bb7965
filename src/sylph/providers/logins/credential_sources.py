"""How to get in to a provider, in the order that users expect: a stored login, a borrowed one, a saved key."""

from collections.abc import AsyncGenerator, Callable, Mapping, Set
from functools import cached_property, partial
from importlib import import_module
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import StoreError
from sylph.net.http_client import HttpClient
from sylph.providers.credentials.entry import CredentialEntry
from sylph.providers.credentials.other_tools import TOOL_CREDENTIALS, ToolCredential
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.endpoint import TokenSource
from sylph.providers.logins.borrowed_login import BorrowedTokenSource
from sylph.providers.logins.oauth import OAuthService
from sylph.providers.logins.saved_key import SavedKeySource
from sylph.providers.logins.token_refresh import RefreshingTokenSource
from sylph.providers.logins.tokens import LoginTokens

SecretObserver = Callable[[str, str], None]
"""Hears of a secret that was just opened, with a name for it."""


def ignore_secret(_: str, __: str) -> None:
    """Nobody has to know."""


class CredentialSource(Struct, frozen=True, kw_only=True):
    """A way in. Nothing is read or reached before its login is asked for a token."""

    login: TokenSource | None
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

    def limited_to(self, url: str) -> "CredentialSource":
        """The way to this address, which is none where the key was given for another."""
        if is_same_origin(self.only_for, url):
            return self
        return CredentialSource(login=None, key_from="", elsewhere=f"{self.key_from} is for {self.only_for}")


def is_same_origin(kept_for: str, url: str) -> bool:
    """Whether a key that was given for one address may be sent to the other."""
    return not kept_for or urlsplit(kept_for)[:2] == urlsplit(url)[:2]


class ReportingTokenSource:
    """A login whose tokens are told to whoever has to keep them secret, before they are given out."""

    def __init__(self, login: TokenSource, name: str, opened: SecretObserver) -> None:
        self._login, self._name, self._opened = login, name, opened

    async def get_token(self) -> str:
        return self._report_token(await self._login.get_token())

    async def renew_token(self, stale: str) -> str:
        return self._report_token(await self._login.renew_token(stale))

    @property
    def last_token(self) -> str:
        return self._login.last_token

    def _report_token(self, token: str) -> str:
        self._opened(token, self._name)
        return token


class CredentialSources:
    """The ways in to every provider that one has credentials for."""

    def __init__(
        self,
        store: CredentialStore,
        client: HttpClient,
        *,
        services: Callable[[], Mapping[str, OAuthService]],
        environ: Mapping[str, str],
        opened: SecretObserver = ignore_secret,
        clock: Clock | None = None,
    ) -> None:
        self._opened = opened
        self.store, self._services, self.environ = store, services, environ
        self._client, self._clock = client, clock or SystemClock()
        self._kinds = store.preferred_kinds()

    def __contains__(self, provider: str) -> bool:
        return provider in self._kinds

    def find_source(self, provider: str) -> CredentialSource | None:
        """The way in to a provider; None where it has no credential, or a damaged one."""
        kind = self._kinds.get(provider)
        way = (
            self._build_source(self._read_entry(provider) or CredentialEntry(provider=provider, kind=kind))
            if kind
            else None
        )
        return (
            replace(way, login=ReportingTokenSource(way.login, f"{provider}-key", self._opened))
            if way and way.login
            else way
        )

    def _read_entry(self, provider: str) -> CredentialEntry | None:
        """What is known of it; nothing of a damaged one, which is told by whoever needs its secret."""
        try:
            return self.store.read_entry(provider, self._kinds[provider])
        except StoreError:
            return None

    def stop_asking(self) -> None:
        """Nobody is asked for a passphrase any more."""
        self.store.stop_asking()

    def unlock(self, providers: Set[str] = frozenset()) -> None:
        """Has the passphrase asked for, where a credential of these providers, or of any, is sealed with one."""
        wanted = [name for name in self._kinds if name in providers or not providers]
        if any(entry and entry.sealed for entry in map(self._read_entry, wanted)):
            self.store.unlock_key()

    @cached_property
    def services(self) -> Mapping[str, OAuthService]:
        return self._services()

    def _build_source(self, entry: CredentialEntry) -> CredentialSource | None:
        told = describe_entry(entry)
        if entry.kind == "key":
            return CredentialSource(
                login=SavedKeySource(self.store, entry.provider), key_from=told, only_for=entry.base_url
            )
        if entry.kind == "borrowed":
            tool = find_tool(entry.account)
            return self._borrowed_source(tool, entry, told) if tool else None
        service = self.services.get(entry.provider)
        if service is None:
            return None
        login = RefreshingTokenSource(
            self.store, entry.provider, partial(self._renew_tokens, service), clock=self._clock
        )
        headers = {**service.headers, **entry.headers}
        return CredentialSource(login=login, key_from=told, headers=headers, base_url=entry.base_url)

    def _borrowed_source(self, tool: ToolCredential, entry: CredentialEntry, told: str) -> CredentialSource:
        login: TokenSource = BorrowedTokenSource(tool, self.environ)
        headers = dict(entry.headers)
        if service := self.services.get(tool.provider):
            from sylph.providers.logins.copilot import CopilotTokenSource

            headers = {**service.headers, **headers}
            if tool.provider == "copilot":
                login = CopilotTokenSource(service, self._client, login, self._clock)
        return CredentialSource(
            login=login, key_from=told, headers={**headers, **tool.headers}, base_url=entry.base_url, bearer=tool.bearer
        )

    def _renew_tokens(self, service: OAuthService, tokens: LoginTokens) -> AsyncGenerator[LoginTokens, None]:
        """By the module of that name."""
        return import_module(f"sylph.providers.logins.{service.name}").renew(service, self._client, tokens, self._clock)


def find_tool(name: str) -> ToolCredential | None:
    return next((tool for tool in TOOL_CREDENTIALS if tool.name == name), None)


def describe_entry(entry: CredentialEntry) -> str:
    """Where a credential comes from, for people."""
    if entry.kind == "borrowed":
        tool = find_tool(entry.account)
        return f"the login of {tool.title if tool else entry.account}"
    where = {"keyring": "the system's keyring", "file": "Sylph's credentials"}[entry.place]
    sealed = ", sealed" if entry.sealed else ""
    what = f"a saved key ({entry.tail})" if entry.kind == "key" else "a login"
    return f"{what} in {where}{sealed}"
