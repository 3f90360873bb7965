"""The login of a ChatGPT subscription: OpenAI's OAuth, its own way with device codes, and the account's header."""

from collections.abc import AsyncGenerator
from typing import cast

from msgspec import Struct

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError
from sylph.net.http import Client
from sylph.providers.logins.device import Code, Show, polled, shown
from sylph.providers.logins.oauth import Refusal, Service, decoded, granted, post
from sylph.providers.logins.tokens import Granted, Tokens, claims_of, tokens_of

ISSUER = "https://auth.openai.com"
TERMS = """\
ChatGPT subscriptions are made for OpenAI's own programs. Using one from another program may be against OpenAI's
terms of use, and may end the access without notice; an API key (`sylph connect openai`) is the way that is meant for
programs. Sylph brings no client id: you give the one that you may use. What you send is seen by OpenAI under your
subscription's data settings, not under those of the API."""
CLAIM = "https://api.openai.com/auth"
ACCOUNT = "chatgpt-account-id"
SERVICE = Service(
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


class _Code(Struct, frozen=True):
    device_auth_id: str = ""
    user_code: str = ""
    usercode: str = ""
    interval: float = 5.0


class _Authorized(Struct, frozen=True):
    authorization_code: str = ""
    code_verifier: str = ""


async def device(service: Service, client: Client, show: Show, clock: Clock | None = None) -> Granted:
    """A code that is typed in elsewhere; it brings an authorization code, and that the tokens."""
    said = await post(service, client, service.device_url, {"client_id": service.client_id}, json=True)
    told = decoded(service, said, _Code)
    place = service.device_url.partition("/api/")[0]
    code = shown(
        service,
        Code(
            user_code=told.user_code or told.usercode,
            device_code=told.device_auth_id,
            verification_uri=f"{place}/codex/device",
            interval=told.interval,
        ),
    )
    show(code)
    ask = {"device_auth_id": code.device_code, "user_code": code.user_code}
    url = f"{service.device_url.rpartition('/')[0]}/token"

    async def once() -> Granted:
        try:
            said = await post(service, client, url, ask, json=True)
        except (ProviderError, Refusal) as error:
            # Before the person is done there is nothing there, which it says with the status, whatever its words are.
            ended = isinstance(error, Refusal) and error.code in ("access_denied", "expired_token", "slow_down")
            if ended or error.status not in (403, 404):
                raise
            raise Refusal("authorization_pending", "Nobody has typed the code yet.") from None
        found = decoded(service, said, _Authorized)
        fields = {
            "grant_type": "authorization_code",
            "code": found.authorization_code,
            "code_verifier": found.code_verifier,
            "redirect_uri": f"{place}/deviceauth/callback",
        }
        return await granted(service, client, fields)

    return await polled(service, code, once, clock or SystemClock())


async def renew(service: Service, client: Client, tokens: Tokens, clock: Clock) -> AsyncGenerator[Tokens, None]:
    if not tokens.refresh:
        raise Refusal("invalid_grant", "it came without a way to renew it")
    fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh, "scope": service.scope}
    yield tokens_of(await granted(service, client, fields), tokens, clock.now() / 1000)


def account(granted: Granted) -> tuple[str, dict[str, str]]:
    """Whose login it is, and the headers that it needs."""
    for token in (granted.id_token or "", granted.access_token):
        claims = claims_of(token)
        inner: object = claims.get(CLAIM)
        told = cast("dict[str, object]", inner) if isinstance(inner, dict) else claims
        id = told.get("chatgpt_account_id")
        if isinstance(id, str) and id.isascii() and id.isprintable():
            email = claims.get("email")
            return email if isinstance(email, str) else id, {ACCOUNT: id}
    return "", {}
