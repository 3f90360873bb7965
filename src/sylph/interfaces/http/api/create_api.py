"""The API as an application: every route in it, one form of error, one schema."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from sylph import __version__
from sylph.core.errors import ErrorReport, SylphError
from sylph.interfaces.http.api.openapi import build_openapi
from sylph.interfaces.http.api.route_table import ALL_ROUTES
from sylph.interfaces.http.kit import problem_details
from sylph.interfaces.http.kit.route import all_declarations
from sylph.interfaces.http.pages import browser_app
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.stream import websocket

logger = logging.getLogger("sylph.http")


def create_api(server: ServerState) -> FastAPI:
    api = FastAPI(title="Sylph", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    api.state.server = server
    for subject in ALL_ROUTES:
        api.router.routes.extend(subject.late)
    api.router.routes.append(WebSocketRoute("/ws", websocket.serve_websocket, name="ws"))
    declared = all_declarations(ALL_ROUTES)

    def schema() -> dict[str, Any]:
        # Made when it is first asked for: it takes longer than all else at the start.
        if api.openapi_schema is None:
            api.openapi_schema = build_openapi(
                api, declared, [late.route for subject in ALL_ROUTES for late in subject.late]
            )
        return api.openapi_schema

    api.openapi = schema
    api.add_exception_handler(SylphError, _handle_known_error)
    api.add_exception_handler(RequestValidationError, _handle_invalid_request)
    api.add_exception_handler(HTTPException, _handle_http_error)
    api.add_exception_handler(ClientDisconnect, _handle_disconnect)
    api.add_exception_handler(Exception, _handle_unexpected_error)
    return api


async def _handle_known_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, SylphError)
    return problem_details.error_response(error)


async def _handle_invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = {".".join(map(str, each["loc"])): str(each["msg"]) for each in error.errors()}
    said = "; ".join(f"{place}: {why}" for place, why in wrong.items())
    return problem_details.problem_response(
        ErrorReport("bad_parameter", said, wrong, ("/docs tells the parameters",)), 422
    )


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and _is_browser_visit(request):
        # The app says it, with a way on.
        shown = browser_app.serve_app_page(request.headers.get("accept-encoding", ""))
        shown.status_code = 404
        return shown
    kind = {404: "not_found", 405: "bad_method"}.get(error.status_code, "failed")
    said = "There is nothing at this address." if kind == "not_found" else str(error.detail)
    advice = ("/docs and docs/handbook/api.md list all requests",)
    return problem_details.problem_response(
        ErrorReport(kind, said, {}, advice), error.status_code, dict(error.headers or {})
    )


def _is_browser_visit(request: Request) -> bool:
    """Whether somebody has typed the address into a browser."""
    wanted = "text/html" in request.headers.get("accept", "")
    return request.method == "GET" and wanted and not request.url.path.startswith("/api/")


async def _handle_disconnect(_: Request, __: Exception) -> Response:
    return problem_details.plain_problem_response("gone", "The client went away while it was sending.", 400)


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_details.plain_problem_response(
        "internal", "Sylph made a mistake; its log says which.", 500, ["look into the server's log"]
    )
