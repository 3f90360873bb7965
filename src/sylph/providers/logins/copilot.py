"""The login of GitHub Copilot: GitHub's OAuth, whose token is exchanged for a short one of Copilot's."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from msgspec import Struct, field

from sylph import __version__
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError
from sylph.net.http import Client
from sylph.providers.endpoint import Login
from sylph.providers.logins.oauth import LIMIT, SECONDS, TIMEOUTS, Refusal, Service, checked, decoded, granted, secure
from sylph.providers.logins.tokens import Tokens

TERMS = """\
GitHub Copilot is made for editors and GitHub's own programs. Using it from another program may be against GitHub's
terms for Copilot, and may end the access without notice. Sylph brings no client id: you give the one of an OAuth app
that you may use. It calls itself Sylph, but for the header Copilot-Integration-Id: without the one of a known chat
client Copilot answers nothing (providers.copilot.headers sets another). What you send is seen by GitHub and by whoever
runs the model."""
GITHUB = "https://github.com/login"
SERVICE = Service(
    name="copilot",
    title="GitHub Copilot",
    terms=TERMS,
    authorize_url=f"{GITHUB}/oauth/authorize",
    token_url=f"{GITHUB}/oauth/access_token",
    device_url=f"{GITHUB}/device/code",
    exchange_url="https://api.github.com/copilot_internal/v2/token",
    scope="read:user",
    headers={"Editor-Version": f"Sylph/{__version__}", "Editor-Plugin-Version": f"sylph/{__version__}"},
)


class _Lent(Struct, frozen=True):
    token: str = ""
    refresh_in: float | None = None
    expires_at: float | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        return "_Lent()"


async def lend(service: Service, client: Client, github: str, clock: Clock) -> tuple[Tokens, str]:
    """A short token for who is logged in to GitHub, and where it is good."""
    headers = {"Authorization": f"token {github}", "Accept": "application/json", **service.headers}
    url = secure(service.exchange_url)
    try:
        async with asyncio.timeout(SECONDS), client.get(url, headers=headers, timeouts=TIMEOUTS) as response:
            said = await response.read(LIMIT)
    except TimeoutError:
        raise ProviderError("timeout", f"{service.title} did not answer within {SECONDS:.0f} s.") from None
    if response.status in (401, 403, 404):
        # 401: the token is not good any more; 403 and 404: the account has no Copilot, or the app may not use it.
        code = "invalid_token" if response.status == 401 else "access_denied"
        raise Refusal(code, f"GitHub gives out no token for Copilot (status {response.status}): {_WHY[code]}")
    lent = decoded(service, checked(service, response.status, said, hidden=(github,)), _Lent)
    if not lent.token:
        raise ProviderError("format", f"{service.title} sent no token: its answer has none.")
    now = clock.now() / 1000
    # Told as a span it does not depend on whose clock is right; as a moment it does, so it is used only without one.
    ends = now + lent.refresh_in + 60 if lent.refresh_in else lent.expires_at or 0.0
    return Tokens(access=lent.token, origin=github, expires=ends), lent.endpoints.get("api", "")


_WHY = {
    "invalid_token": "the login to GitHub has ended",
    "access_denied": "does the account have Copilot, and may this app use it?",
}


async def renew(service: Service, client: Client, tokens: Tokens, clock: Clock) -> AsyncGenerator[Tokens, None]:
    """Lent anew; where GitHub's own token has ended and can be renewed, that first."""
    try:
        fresh, _ = await lend(service, client, tokens.origin, clock)
    except Refusal as error:
        if error.code != "invalid_token" or not tokens.refresh:
            raise
        fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
        github = await granted(service, client, fields)
        tokens = Tokens(refresh=github.refresh_token or tokens.refresh, origin=github.access_token)
        yield tokens
        fresh, _ = await lend(service, client, tokens.origin, clock)
    yield Tokens(access=fresh.access, expires=fresh.expires, origin=fresh.origin, refresh=tokens.refresh)


class Lent:
    """An endpoint.Login: short tokens for another login's token, kept in mind only."""

    def __init__(self, service: Service, client: Client, github: Login, clock: Clock | None = None) -> None:
        self._service, self._client, self._github = service, client, github
        self._clock = clock or SystemClock()
        self._tokens = Tokens()
        self._one = asyncio.Lock()

    async def token(self) -> str:
        async with self._one:
            if not self._tokens.good(self._clock.now() / 1000):
                await self._lend()
            return self._tokens.access

    async def renewed(self, stale: str) -> str:
        async with self._one:
            if self._tokens.access == stale:
                await self._lend()
            return self._tokens.access

    @property
    def given(self) -> str:
        return self._tokens.access

    async def _lend(self) -> None:
        github = await self._github.token()
        try:
            self._tokens, _ = await lend(self._service, self._client, github, self._clock)
        except Refusal as error:
            raise ProviderError("auth", str(error), next=error.trouble.next) from error
