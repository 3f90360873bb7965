"""Routes as declarations: who may, what goes in, what comes out. FastAPI serves them, the schema is made of ours.

A handler's parameters say what it needs: `house`, `who`, `request` and `body` (a Struct) are filled in here; all others
are parts of the path, the query or headers, and are FastAPI's.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import Any, Generic, TypeVar, cast, get_origin

import msgspec
from fastapi import Request
from fastapi.routing import APIRoute
from msgspec import Struct
from starlette.requests import HTTPConnection
from starlette.responses import Response

from sylph.core.errors import UserError
from sylph.interfaces.actions.attachment import MAX_TOTAL_BYTES
from sylph.interfaces.http.kit.lazy_route import LazyRoute
from sylph.interfaces.http.kit.principal import Principal, Scope
from sylph.interfaces.http.kit.problem_details import AccessDenied

T = TypeVar("T")
Handler = Callable[..., Awaitable[Any]]
PREFIX = "/api/v1"
JSON = "application/json"
ATTACHMENT_BYTES = MAX_TOTAL_BYTES * 4 // 3
# Versions as `If-Match` names them; quotes may have been lost on the way.
ETAG_PATTERN = re.compile(r'(W/)?"?[\w.-]{4,}"?(\s*,\s*(W/)?"?[\w.-]{4,}"?)*')
INJECTED = ("server", "principal", "request", "body")


class RouteDeclaration(Struct, frozen=True, kw_only=True):
    """A route, as the schema and the tests know it."""

    method: str
    path: str
    scope: Scope | None
    """None for what anybody may, without a credential."""
    also: str = ""
    """Which scope it needs for more than that, and for what."""
    takes: Any = None
    gives: Any = None
    streams: Any = None
    """The events of `text/event-stream`, where the route can answer with that."""
    media: str = JSON
    status: int = 200
    other: tuple[int, ...] = ()
    """Other good answers: 200 and 201 with the same content, 204 with none."""
    errors: tuple[int, ...] = ()
    upload: bool = False
    """Whether its body may be as large as an uploaded file."""
    attaches: bool = False
    """Whether its body may hold the files of a message, in base64."""
    accepts: str = ""
    """What kind of bytes the body is, where it is no JSON of ours."""
    versioned: bool = False
    """Whether its answer is told with a version."""
    doc: str = ""
    """What its docstring tells."""
    example: Any = None
    answer: Any = None

    @property
    def scope_text(self) -> str:
        """The scopes it needs, in words; empty for none."""
        return f"`{self.scope}`" + (f"; {self.also}" if self.also else "") if self.scope else ""

    @property
    def openapi_path(self) -> str:
        """Its path as the documents write it."""
        return self.path.replace(":path}", "}")

    @property
    def summary(self) -> str:
        return self.doc.partition("\n")[0].rstrip(".")


class ListPage(Struct, Generic[T], frozen=True, kw_only=True):
    """Some of many: `next` is the cursor for those that follow, and missing at the end."""

    items: list[T]
    next: str | None = None


class Versioned(Struct, Generic[T], frozen=True):
    """An answer with its version: given back as `If-Match` an edit knows whether somebody was faster."""

    value: T
    tag: str
    status: int = 0
    """Where it is another one than the route's own."""


class RouteGroup:
    """The routes of one subject."""

    def __init__(self, subject: str, prefix: str = PREFIX) -> None:
        self.subject, self.prefix = subject, prefix
        self.declared: list[RouteDeclaration] = []
        self.late: list[LazyRoute] = []

    def get(self, path: str, **how: Any) -> Callable[[Handler], Handler]:
        return self._declare("GET", path, how)

    def post(self, path: str, **how: Any) -> Callable[[Handler], Handler]:
        return self._declare("POST", path, how)

    def put(self, path: str, **how: Any) -> Callable[[Handler], Handler]:
        return self._declare("PUT", path, how)

    def patch(self, path: str, **how: Any) -> Callable[[Handler], Handler]:
        return self._declare("PATCH", path, how)

    def delete(self, path: str, **how: Any) -> Callable[[Handler], Handler]:
        return self._declare("DELETE", path, how)

    def _declare(self, method: str, path: str, how: dict[str, Any]) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            signature = inspect.signature(handler)
            if signature.return_annotation is None:
                how.setdefault("status", 204)
            takes = signature.parameters.get("body")
            route = RouteDeclaration(
                method=method,
                path=self.prefix + path,
                takes=takes.annotation if takes else None,
                versioned=get_origin(signature.return_annotation) is Versioned,
                doc=inspect.getdoc(handler) or "",
                **how,
            )
            self.declared.append(route)
            self.late.append(LazyRoute(route.path, method, partial(self._build_route, handler, route)))
            return handler

        return declare

    def _build_route(self, handler: Handler, route: RouteDeclaration) -> APIRoute:
        names = set[str]()
        made = APIRoute(
            route.path,
            _build_endpoint(handler, route, names),
            methods=[route.method],
            status_code=route.status,
            response_model=None,
            tags=[self.subject],
            summary=route.summary,
            name=handler.__name__,
            operation_id=handler.__name__.strip("_"),
        )
        names |= {each.alias for each in made.dependant.query_params}
        return made


def _build_endpoint(handler: Handler, route: RouteDeclaration, names: set[str]) -> Handler:
    signature = inspect.signature(handler)
    wanted = [name for name in INJECTED if name in signature.parameters]

    @wraps(handler)
    async def endpoint(request: Request, **given: Any) -> Response:
        principal = authorize_request(request, route.scope)
        if route.upload or route.attaches:
            most = int(request.app.state.server.app.config.settings.server.upload_mb * 1_000_000)
            request.state.body.most = most if route.upload else min(most, request.state.body.most + ATTACHMENT_BYTES)
        _reject_unknown_parameters(request, names)
        for name in wanted:
            match name:
                case "server":
                    given[name] = request.app.state.server
                case "principal":
                    given[name] = principal
                case "request":
                    given[name] = request
                case _:
                    given[name] = decode_body(await request.body(), route.takes)
        try:
            return to_response(await handler(**given), route.status, request)
        except ValueError as error:
            if "embedded null" not in str(error):
                raise
            raise UserError("A name cannot hold a NUL.", kind="bad_parameter", next=["leave it out"]) from error

    kept = [each for name, each in signature.parameters.items() if name not in INJECTED]
    asked = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in kept]
    endpoint.__signature__ = signature.replace(parameters=[asked, *own])  # pyright: ignore[reportAttributeAccessIssue]
    return endpoint


def _reject_unknown_parameters(request: Request, names: set[str]) -> None:
    """Raises for a parameter that the route does not know: a typing error does not pass for a wish.

    Clients of another API, whose form is not ours, are left their own.
    """
    if "%00" in request.url.query:
        raise UserError("A name cannot hold a NUL.", kind="bad_parameter", next=["leave it out"])
    odd = sorted(request.query_params.keys() - names) if request.url.path.startswith(PREFIX) else []
    if odd:
        known = ", ".join(sorted(names)) or "none"
        raise UserError(
            f"There is no parameter {', '.join(map(repr, odd))[:200]} here.",
            kind="unknown_parameter",
            details={"parameters": ", ".join(odd)[:500]},
            next=[f"the parameters: {known}"],
        )


def authorize_request(request: HTTPConnection, scope: Scope | None) -> Principal | None:
    """Who asks. Raises Denied where that is nobody who may."""
    principal = cast("Principal | None", request.scope.get("state", {}).get("principal"))
    if scope is None:
        return principal
    if principal is None:
        raise AccessDenied("This needs a credential.", kind="unauthorized", next=["sylph token create NAME", "log in"])
    return check_scope(principal, scope)


def check_scope(principal: Principal, scope: Scope) -> Principal:
    if not principal.has_scope(scope):
        raise AccessDenied(
            f"{principal.name!r} has no scope `{scope}`.",
            details={"scope": scope},
            next=[f"use a token with `{scope}`"],
        )
    return principal


def decode_body(data: bytes, shape: Any) -> Any:
    """The body of a request. Raises UserError where it is not what the route takes."""
    try:
        return msgspec.json.decode(data or b"{}", type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        from sylph.interfaces.http.kit.body_error import explain_decode_error

        raise UserError(
            explain_decode_error(error, data, shape), kind="bad_body", next=["/docs tells its form"]
        ) from error


def to_response(result: Any, status: int, request: Request) -> Response:
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status_code=204)
    headers: dict[str, str] = {}
    if isinstance(result, Versioned):
        tag, status, result = result.tag, result.status or status, cast(Any, result).value
        headers["ETag"] = f'"{tag}"'
        if request.method == "GET" and etag_matches(tag, request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
    return Response(msgspec.json.encode(result, enc_hook=str), status, headers, JSON)


def etag_matches(tag: str, given: str) -> bool:
    """Whether a version is one of those in an `If-Match` or `If-None-Match`."""
    return given.strip() == "*" or any(each.strip().removeprefix("W/").strip('"') == tag for each in given.split(","))


def check_if_match(tag: str, if_match: str, part: Callable[[str], str] = str) -> None:
    """Raises where somebody else was faster; without `If-Match` the last one wins. Only a `part` of tags may count."""
    given = [each.strip().removeprefix("W/").strip('"') for each in if_match.split(",")]
    if if_match and if_match.strip() != "*" and part(tag) not in map(part, given):
        raise version_conflict(tag, if_match)


def version_conflict(tag: str, if_match: str, what: str = "it") -> AccessDenied:
    """Why an edit is refused: somebody was faster, or what it is based on is no version of anything."""
    details = {"etag": f'"{tag}"'}
    if not ETAG_PATTERN.fullmatch(if_match.strip()):
        return AccessDenied(
            f"`If-Match: {if_match[:100]}` is no ETag, so it names no version of {what}.",
            kind="changed",
            details=details,
            next=["give the ETag of what you read, in its quotes"],
        )
    return AccessDenied(f"Somebody changed {what} meanwhile.", kind="changed", details=details, next=["read it again"])


def all_declarations(subjects: Sequence[RouteGroup]) -> list[RouteDeclaration]:
    return [each for subject in subjects for each in subject.declared]
