"""The login of GitHub Copilot: GitHub's OAuth, whose token is exchanged for a short one of Copilot's."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from msgspec import Struct, field

from sylph import __version__
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import TokenSource
from sylph.providers.logins.oauth import (
    LIMIT,
    SECONDS,
    TIMEOUTS,
    OAuthRefusal,
    OAuthService,
    check_response,
    decode_response,
    request_token,
    require_https,
)
from sylph.providers.logins.tokens import LoginTokens

TERMS = """\
GitHub Copilot is made for editors and GitHub's own programs. Using it from another program may be against GitHub's
terms for Copilot, and may end the access without notice. Sylph brings no client id: you give the one of an OAuth app
that you may use. It calls itself Sylph, but for the header Copilot-Integration-Id: without the one of a known chat
client Copilot answers nothing (providers.copilot.headers sets another). What you send is seen by GitHub and by whoever
runs the model."""
GITHUB = "https://github.com/login"
SERVICE = OAuthService(
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


class _CopilotTokenResponse(Struct, frozen=True):
    token: str = ""
    refresh_in: float | None = None
    expires_at: float | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        return "_CopilotTokenResponse()"


async def exchange_token(
    service: OAuthService, client: HttpClient, github: str, clock: Clock
) -> tuple[LoginTokens, str]:
    """A short token for who is logged in to GitHub, and where it is good."""
    headers = {"Authorization": f"token {github}", "Accept": "application/json", **service.headers}
    url = require_https(service.exchange_url)
    try:
        async with asyncio.timeout(SECONDS), client.get(url, headers=headers, timeouts=TIMEOUTS) as response:
            said = await response.read(LIMIT)
    except TimeoutError:
        raise ProviderError("timeout", f"{service.title} did not answer within {SECONDS:.0f} s.") from None
    if response.status in (401, 403, 404):
        # 401: the token is not good any more; 403 and 404: the account has no Copilot, or the app may not use it.
        code = "invalid_token" if response.status == 401 else "access_denied"
        raise OAuthRefusal(
            code, f"GitHub gives out no token for Copilot (status {response.status}): {_REFUSAL_REASONS[code]}"
        )
    lent = decode_response(
        service, check_response(service, response.status, said, hidden=(github,)), _CopilotTokenResponse
    )
    if not lent.token:
        raise ProviderError("format", f"{service.title} sent no token: its answer has none.")
    now = clock.now() / 1000
    # Told as a span it does not depend on whose clock is right; as a moment it does, so it is used only without one.
    ends = now + lent.refresh_in + 60 if lent.refresh_in else lent.expires_at or 0.0
    return LoginTokens(access=lent.token, origin=github, expires=ends), lent.endpoints.get("api", "")


_REFUSAL_REASONS = {
    "invalid_token": "the login to GitHub has ended",
    "access_denied": "does the account have Copilot, and may this app use it?",
}


async def renew(
    service: OAuthService, client: HttpClient, tokens: LoginTokens, clock: Clock
) -> AsyncGenerator[LoginTokens, None]:
    """Lent anew; where GitHub's own token has ended and can be renewed, that first."""
    try:
        fresh, _ = await exchange_token(service, client, tokens.origin, clock)
    except OAuthRefusal as error:
        if error.code != "invalid_token" or not tokens.refresh:
            raise
        fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
        github = await request_token(service, client, fields)
        tokens = LoginTokens(refresh=github.refresh_token or tokens.refresh, origin=github.access_token)
        yield tokens
        fresh, _ = await exchange_token(service, client, tokens.origin, clock)
    yield LoginTokens(access=fresh.access, expires=fresh.expires, origin=fresh.origin, refresh=tokens.refresh)


class CopilotTokenSource:
    """An endpoint.Login: short tokens for another login's token, kept in mind only."""

    def __init__(
        self, service: OAuthService, client: HttpClient, github: TokenSource, clock: Clock | None = None
    ) -> None:
        self._service, self._client, self._github = service, client, github
        self._clock = clock or SystemClock()
        self._tokens = LoginTokens()
        self._one = asyncio.Lock()

    async def get_token(self) -> str:
        async with self._one:
            if not self._tokens.is_valid(self._clock.now() / 1000):
                await self._exchange_token()
            return self._tokens.access

    async def renew_token(self, stale: str) -> str:
        async with self._one:
            if self._tokens.access == stale:
                await self._exchange_token()
            return self._tokens.access

    @property
    def last_token(self) -> str:
        return self._tokens.access

    async def _exchange_token(self) -> None:
        github = await self._github.get_token()
        try:
            self._tokens, _ = await exchange_token(self._service, self._client, github, self._clock)
        except OAuthRefusal as error:
            raise ProviderError("auth", str(error), next=error.trouble.next) from error
