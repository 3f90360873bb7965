"""Logging in with a browser: the authorization code flow with PKCE."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from sylph.net.http_client import HttpClient
from sylph.providers.logins.oauth import OAuthService, request_token, require_https
from sylph.providers.logins.redirect_listener import RedirectListener
from sylph.providers.logins.tokens import OAuthTokenResponse

SECONDS = 300.0
ShowLoginPage = Callable[[str], Awaitable[None]]
"""Shows the person the address of the login page, and opens it where there is a browser."""


async def browser_login(
    service: OAuthService, client: HttpClient, visit: ShowLoginPage, *, seconds: float = SECONDS
) -> OAuthTokenResponse:
    """Waits until the person has logged in. The listener stands before the browser is sent anywhere."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    async with RedirectListener(service, state) as listener:
        redirect = listener.redirect
        await visit(_authorization_url(service, redirect, state, pkce_challenge(verifier)))
        code = await listener.wait_for_code(seconds)
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    return await request_token(service, client, fields)


def pkce_challenge(verifier: str) -> str:
    """S256 of RFC 7636."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _authorization_url(service: OAuthService, redirect: str, state: str, challenge: str) -> str:
    asked = {
        "response_type": "code",
        "client_id": service.client_id,
        "redirect_uri": redirect,
        "scope": service.scope,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **service.more,
    }
    return f"{require_https(service.authorize_url)}?{urlencode(asked)}"
