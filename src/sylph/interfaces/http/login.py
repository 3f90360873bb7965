"""Logging in: a key or a one-time link becomes a cookie."""

import time
from typing import Annotated

import msgspec
from fastapi import Request
from msgspec import Meta, Struct
from starlette.responses import Response

from sylph.core.errors import UserError
from sylph.interfaces.http.access.identity import COOKIE, SECURE_COOKIE
from sylph.interfaces.http.access.placeholders import is_placeholder
from sylph.interfaces.http.access.rates import address_of
from sylph.interfaces.http.house import House
from sylph.interfaces.http.keys import DAY
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.route import JSON, Routes
from sylph.interfaces.http.who import Who

routes = Routes("login")


class LoginBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(max_length=200, description="The code of a one-time link.")] = ""
    key: Annotated[str, Meta(max_length=200, description="A token: the login may what the token may.")] = ""


class Login(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who one is, and what one may."""

    id: str
    name: str
    way: str
    scopes: tuple[str, ...]
    expires: int | None = None


class Found(Struct, frozen=True, kw_only=True):
    """What a login will be good for."""

    name: str
    scopes: tuple[str, ...]
    left: float = DAY
    parent: str | None = None


EXAMPLE = Login(id="7kq2mzxw4tbd", name="owner", way="cookie", scopes=("admin",), expires=1_790_000_000_000)


@routes.post("/login", scope=None, gives=Login, errors=(401,), example=LoginBody(code="sylph_…"), answer=EXAMPLE)
async def enter(house: House, request: Request, body: LoginBody) -> Response:
    """Log in with a one-time code or a key; the answer sets the cookie."""
    address = address_of(request.client.host if request.client else "")
    house.attempts.check(address)
    found = _found(house, body)
    house.attempts.good(address)
    key, secret = house.keys.make("cookie", found.name, found.scopes, found.left, parent=found.parent)
    told = Login(id=key.id, name=key.name, way="cookie", scopes=key.scopes, expires=key.expires)
    response = Response(msgspec.json.encode(told), media_type=JSON)
    _set(response, house, request, secret, int(found.left))
    return response


@routes.get("/login", scope=None, gives=Login, errors=(401,), answer=EXAMPLE)
async def current(who: Who | None) -> Login:
    """Who you are, and what you may."""
    if who is None:
        raise Denied("You are not logged in.", kind="unauthorized", next=["sylph token link"])
    return Login(id=who.id, name=who.name, way=who.way, scopes=tuple(sorted(who.scopes)), expires=who.expires)


@routes.delete("/login", scope=None, errors=(401,), status=204)
async def leave(house: House, request: Request, who: Who | None) -> Response:
    """Log out: the cookie is refused from now on."""
    if who is None:
        raise Denied("You are not logged in.", kind="unauthorized", next=["sylph token link"])
    if who.way != "cookie":
        raise UserError("A token does not log out.", next=["DELETE /api/v1/keys/{id} revokes it"])
    house.keys.revoke(who.id)
    response = Response(status_code=204)
    _set(response, house, request, "", 0)
    return response


def _found(house: House, body: LoginBody) -> Found:
    if bool(body.code) == bool(body.key):
        raise UserError("Give either `code` or `key`.", kind="bad_body", next=["sylph token link"])
    return _by_code(house, body.code) if body.code else _by_key(house, body.key)


def _by_code(house: House, code: str) -> Found:
    link = house.keys.spend(code)
    if link is None:
        raise Denied(
            "The link is not good any more: it works once, and for ten minutes.",
            kind="unauthorized",
            next=["sylph token link  makes another"],
        )
    return Found(name=link.name, scopes=link.scopes)


def _by_key(house: House, secret: str) -> Found:
    who = house.keys.known(secret.strip(), "token")
    if who is None:
        kind = "placeholder_token" if is_placeholder(secret) else "unauthorized"
        raise Denied("The key is not known, or no longer.", kind=kind, next=["sylph token link", "sylph token list"])
    if "hook" in who.scopes:
        raise Denied("A key for hooks does not log in.", next=["sylph token create NAME --scope read"])
    left = min(DAY, who.expires / 1000 - time.time()) if who.expires else DAY
    return Found(name=who.name, scopes=tuple(who.scopes), left=left, parent=who.id)


def _set(response: Response, house: House, request: Request, secret: str, seconds: int) -> None:
    name = SECURE_COOKIE if house.address.secure else COOKIE
    # A proxy in front may speak TLS where we do not: whose page it is was looked at already.
    secure = house.address.secure or request.headers.get("origin", "").startswith("https://")
    response.set_cookie(name, secret, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")
