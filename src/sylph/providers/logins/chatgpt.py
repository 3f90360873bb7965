"""The login of a ChatGPT subscription: OpenAI's OAuth, its own way with device codes, and the account's header."""

from collections.abc import AsyncGenerator
from typing import cast

from msgspec import Struct

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError
from sylph.net.http_client import HttpClient
from sylph.providers.logins.device_code import DeviceCode, ShowCode, check_code, poll_token
from sylph.providers.logins.oauth import OAuthRefusal, OAuthService, decode_response, post_form, request_token
from sylph.providers.logins.tokens import LoginTokens, OAuthTokenResponse, jwt_claims, tokens_from_response

ISSUER = "https://auth.openai.com"
TERMS = """\
ChatGPT subscriptions are made for OpenAI's own programs. Using one from another program may be against OpenAI's
terms of use, and may end the access without notice; an API key (`sylph connect openai`) is the way that is meant for
programs. Sylph brings no client id: you give the one that you may use. What you send is seen by OpenAI under your
subscription's data settings, not under those of the API."""
AUTH_CLAIM = "https://api.openai.com/auth"
ACCOUNT_HEADER = "chatgpt-account-id"
SERVICE = OAuthService(
    name="chatgpt",
    title="ChatGPT",
    terms=TERMS,
    authorize_url=f"{ISSUER}/oauth/authorize",
    token_url=f"{ISSUER}/oauth/token",
    device_url=f"{ISSUER}/api/accounts/deviceauth/usercode",
    scope="openid profile email offline_access",
    redirect="http://localhost:1455/auth/callback",
    more={"id_token_add_organizations": "true"},
)


class _DeviceCodeResponse(Struct, frozen=True):
    device_auth_id: str = ""
    user_code: str = ""
    usercode: str = ""
    interval: float = 5.0


class _AuthorizationCode(Struct, frozen=True):
    authorization_code: str = ""
    code_verifier: str = ""


async def device_login(
    service: OAuthService, client: HttpClient, show: ShowCode, clock: Clock | None = None
) -> OAuthTokenResponse:
    """A code that is typed in elsewhere; it brings an authorization code, and that the tokens."""
    said = await post_form(service, client, service.device_url, {"client_id": service.client_id}, json=True)
    told = decode_response(service, said, _DeviceCodeResponse)
    place = service.device_url.partition("/api/")[0]
    code = check_code(
        service,
        DeviceCode(
            user_code=told.user_code or told.usercode,
            device_code=told.device_auth_id,
            verification_uri=f"{place}/codex/device",
            interval=told.interval,
        ),
    )
    show(code)
    ask = {"device_auth_id": code.device_code, "user_code": code.user_code}
    url = f"{service.device_url.rpartition('/')[0]}/token"

    async def once() -> OAuthTokenResponse:
        try:
            said = await post_form(service, client, url, ask, json=True)
        except (ProviderError, OAuthRefusal) as error:
            # Before the person is done there is nothing there, which it says with the status, whatever its words are.
            ended = isinstance(error, OAuthRefusal) and error.code in ("access_denied", "expired_token", "slow_down")
            if ended or error.status not in (403, 404):
                raise
            raise OAuthRefusal("authorization_pending", "Nobody has typed the code yet.") from None
        found = decode_response(service, said, _AuthorizationCode)
        fields = {
            "grant_type": "authorization_code",
            "code": found.authorization_code,
            "code_verifier": found.code_verifier,
            "redirect_uri": f"{place}/deviceauth/callback",
        }
        return await request_token(service, client, fields)

    return await poll_token(service, code, once, clock or SystemClock())


async def renew(
    service: OAuthService, client: HttpClient, tokens: LoginTokens, clock: Clock
) -> AsyncGenerator[LoginTokens, None]:
    if not tokens.refresh:
        raise OAuthRefusal("invalid_grant", "it came without a way to renew it")
    fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh, "scope": service.scope}
    yield tokens_from_response(await request_token(service, client, fields), tokens, clock.now() / 1000)


def read_account(granted: OAuthTokenResponse) -> tuple[str, dict[str, str]]:
    """Whose login it is, and the headers that it needs."""
    for token in (granted.id_token or "", granted.access_token):
        claims = jwt_claims(token)
        inner: object = claims.get(AUTH_CLAIM)
        told = cast("dict[str, object]", inner) if isinstance(inner, dict) else claims
        id = told.get("chatgpt_account_id")
        if isinstance(id, str) and id.isascii() and id.isprintable():
            email = claims.get("email")
            return email if isinstance(email, str) else id, {ACCOUNT_HEADER: id}
    return "", {}
