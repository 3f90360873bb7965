"""Logging in with a browser: the authorization code flow with PKCE."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from sylph.net.http import Client
from sylph.providers.logins.listener import Listener
from sylph.providers.logins.oauth import Service, granted, secure
from sylph.providers.logins.tokens import Granted

SECONDS = 300.0
Visit = Callable[[str], Awaitable[None]]
"""Shows the person the address of the login page, and opens it where there is a browser."""


async def browser_login(service: Service, client: Client, visit: Visit, *, seconds: float = SECONDS) -> Granted:
    """Waits until the person has logged in. The listener stands before the browser is sent anywhere."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    async with Listener(service, state) as listener:
        redirect = listener.redirect
        await visit(_address(service, redirect, state, challenge(verifier)))
        code = await listener.code(seconds)
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    return await granted(service, client, fields)


def challenge(verifier: str) -> str:
    """S256 of RFC 7636."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _address(service: Service, redirect: str, state: str, challenge: str) -> str:
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
    return f"{secure(service.authorize_url)}?{urlencode(asked)}"
