"""The API, put together: every subject's routes, one form of error, one schema."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from sylph import __version__
from sylph.core.errors import SylphError, Trouble
from sylph.interfaces.http import (
    config,
    credentials,
    git_remote,
    health,
    identity,
    keyring,
    login,
    logs,
    metrics,
    models,
    policy,
    problems,
    roles,
    session_routes,
    sockets,
    status,
    streams,
    tools,
    webapp,
)
from sylph.interfaces.http.files import archive, deleting, listing, moving, reading, searching, workspaces, writing
from sylph.interfaces.http.house import House
from sylph.interfaces.http.manual import pages as manual
from sylph.interfaces.http.openai.routes import OPENAI
from sylph.interfaces.http.pages import routes as pages
from sylph.interfaces.http.route import Routes, declared_by
from sylph.interfaces.http.schema import document

logger = logging.getLogger("sylph.http")
FILES = tuple(each.routes for each in (workspaces, listing, reading, writing, moving, deleting, archive, searching))
SUBJECTS: tuple[Routes, ...] = (
    health.routes,
    login.routes,
    keyring.routes,
    pages.routes,
    webapp.routes,
    *session_routes.SUBJECTS,
    streams.routes,
    config.routes,
    models.routes,
    roles.routes,
    tools.routes,
    policy.routes,
    credentials.routes,
    identity.routes,
    logs.routes,
    metrics.routes,
    status.routes,
    *FILES,
    *OPENAI,
    git_remote.routes,
    manual.routes,
)


def make(house: House) -> FastAPI:
    api = FastAPI(title="Sylph", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    api.state.house = house
    for subject in SUBJECTS:
        api.router.routes.extend(subject.late)
    api.router.routes.append(WebSocketRoute("/ws", sockets.door, name="ws"))
    declared = declared_by(SUBJECTS)

    def schema() -> dict[str, Any]:
        # Made when it is first asked for: it takes longer than all else at the start.
        if api.openapi_schema is None:
            api.openapi_schema = document(api, declared, [late.route for subject in SUBJECTS for late in subject.late])
        return api.openapi_schema

    api.openapi = schema
    api.add_exception_handler(SylphError, _expected)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _plain)
    api.add_exception_handler(ClientDisconnect, _gone)
    api.add_exception_handler(Exception, _unexpected)
    return api


async def _expected(_: Request, error: Exception) -> Response:
    assert isinstance(error, SylphError)
    return problems.answer_error(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = {".".join(map(str, each["loc"])): str(each["msg"]) for each in error.errors()}
    said = "; ".join(f"{place}: {why}" for place, why in wrong.items())
    return problems.answer(Trouble("bad_parameter", said, wrong, ("/docs tells the parameters",)), 422)


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and _looked_at(request):
        # The app says it, with a way on.
        shown = webapp.page(request.headers.get("accept-encoding", ""))
        shown.status_code = 404
        return shown
    kind = {404: "not_found", 405: "bad_method"}.get(error.status_code, "failed")
    said = "There is nothing at this address." if kind == "not_found" else str(error.detail)
    advice = ("/docs and docs/handbook/api.md list all requests",)
    return problems.answer(Trouble(kind, said, {}, advice), error.status_code, dict(error.headers or {}))


def _looked_at(request: Request) -> bool:
    """Whether somebody has typed the address into a browser."""
    wanted = "text/html" in request.headers.get("accept", "")
    return request.method == "GET" and wanted and not request.url.path.startswith("/api/")


async def _gone(_: Request, __: Exception) -> Response:
    return problems.say("gone", "The client went away while it was sending.", 400)


async def _unexpected(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problems.say("internal", "Sylph made a mistake; its log says which.", 500, ["look into the server's log"])
