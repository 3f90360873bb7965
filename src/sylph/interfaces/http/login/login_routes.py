"""Logging in: a key or a one-time link becomes a cookie."""

import time
from typing import Annotated

import msgspec
from fastapi import Request
from msgspec import Meta, Struct
from starlette.responses import Response

from sylph.core.errors import UserError
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import JSON, RouteGroup
from sylph.interfaces.http.security.authentication import COOKIE, SECURE_COOKIE
from sylph.interfaces.http.security.checks.placeholder_token import is_placeholder
from sylph.interfaces.http.security.rate_limit import client_network
from sylph.interfaces.http.security.token_store import DAY
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("login")


class LoginBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(max_length=200, description="The code of a one-time link.")] = ""
    key: Annotated[str, Meta(max_length=200, description="A token: the login may what the token may.")] = ""


class LoginView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who one is, and what one may."""

    id: str
    name: str
    way: str
    scopes: tuple[str, ...]
    expires: int | None = None


class LoginGrant(Struct, frozen=True, kw_only=True):
    """What a login will be good for."""

    name: str
    scopes: tuple[str, ...]
    seconds: float = DAY
    parent: str | None = None


EXAMPLE = LoginView(id="7kq2mzxw4tbd", name="owner", way="cookie", scopes=("admin",), expires=1_790_000_000_000)


@routes.post("/login", scope=None, gives=LoginView, errors=(401,), example=LoginBody(code="sylph_…"), answer=EXAMPLE)
async def log_in(server: ServerState, request: Request, body: LoginBody) -> Response:
    """Log in with a one-time code or a key; the answer sets the cookie."""
    address = client_network(request.client.host if request.client else "")
    server.login_attempts.check(address)
    found = _check_login(server, body)
    server.login_attempts.record_success(address)
    key, secret = server.token_store.create_token(
        "cookie", found.name, found.scopes, found.seconds, parent=found.parent
    )
    told = LoginView(id=key.id, name=key.name, way="cookie", scopes=key.scopes, expires=key.expires)
    response = Response(msgspec.json.encode(told), media_type=JSON)
    _set_cookie(response, server, request, secret, int(found.seconds))
    return response


@routes.get("/login", scope=None, gives=LoginView, errors=(401,), answer=EXAMPLE)
async def get_login(principal: Principal | None) -> LoginView:
    """Who you are, and what you may."""
    if principal is None:
        raise AccessDenied("You are not logged in.", kind="unauthorized", next=["sylph token link"])
    return LoginView(
        id=principal.id,
        name=principal.name,
        way=principal.way,
        scopes=tuple(sorted(principal.scopes)),
        expires=principal.expires,
    )


@routes.delete("/login", scope=None, errors=(401,), status=204)
async def log_out(server: ServerState, request: Request, principal: Principal | None) -> Response:
    """Log out: the cookie is refused from now on."""
    if principal is None:
        raise AccessDenied("You are not logged in.", kind="unauthorized", next=["sylph token link"])
    if principal.way != "cookie":
        raise UserError("A token does not log out.", next=["DELETE /api/v1/keys/{id} revokes it"])
    server.token_store.revoke(principal.id)
    response = Response(status_code=204)
    _set_cookie(response, server, request, "", 0)
    return response


def _check_login(server: ServerState, body: LoginBody) -> LoginGrant:
    if bool(body.code) == bool(body.key):
        raise UserError("Give either `code` or `key`.", kind="bad_body", next=["sylph token link"])
    return _redeem_code(server, body.code) if body.code else _check_token(server, body.key)


def _redeem_code(server: ServerState, code: str) -> LoginGrant:
    link = server.token_store.redeem_link(code)
    if link is None:
        raise AccessDenied(
            "The link is not good any more: it works once, and for ten minutes.",
            kind="unauthorized",
            next=["sylph token link  makes another"],
        )
    return LoginGrant(name=link.name, scopes=link.scopes)


def _check_token(server: ServerState, secret: str) -> LoginGrant:
    principal = server.token_store.find_principal(secret.strip(), "token")
    if principal is None:
        kind = "placeholder_token" if is_placeholder(secret) else "unauthorized"
        raise AccessDenied(
            "The key is not known, or no longer.", kind=kind, next=["sylph token link", "sylph token list"]
        )
    if "hook" in principal.scopes:
        raise AccessDenied("A key for hooks does not log in.", next=["sylph token create NAME --scope read"])
    left = min(DAY, principal.expires / 1000 - time.time()) if principal.expires else DAY
    return LoginGrant(name=principal.name, scopes=tuple(principal.scopes), seconds=left, parent=principal.id)


def _set_cookie(response: Response, server: ServerState, request: Request, secret: str, seconds: int) -> None:
    name = SECURE_COOKIE if server.address.secure else COOKIE
    # A proxy in front may speak TLS where we do not: whose page it is was looked at already.
    secure = server.address.secure or request.headers.get("origin", "").startswith("https://")
    response.set_cookie(name, secret, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")
