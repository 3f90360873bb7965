"""The server's own log over HTTP: its end for who administers, and a place for what goes wrong in the browser."""

import asyncio
import logging
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.errors import NotFound
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.request_id import current_request_id
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.monitoring.server_log import FIELDS, log_file_path, read_last_lines
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("logs")
logger = logging.getLogger("sylph.client")
LogLevel = Literal["debug", "info", "warning", "error"]
LOG_LEVELS: tuple[str, ...] = ("debug", "info", "warning", "error", "critical")


class ServerLogView(Struct, frozen=True, kw_only=True):
    file: str
    lines: list[dict[str, Any]]
    """The oldest first."""


class ClientErrorBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that went wrong in a browser. What it is about, and no content of anybody's."""

    message: Annotated[str, Meta(min_length=1, max_length=2000)]
    level: LogLevel = "error"
    where: Annotated[str, Meta(max_length=200, description="The page or part.")] = ""
    stack: Annotated[str, Meta(max_length=8000)] = ""
    version: Annotated[str, Meta(max_length=100)] = ""


class ClientErrorReceipt(Struct, frozen=True, kw_only=True):
    request: str
    """By this it is found in the log."""


@routes.get("/logs", scope="admin", gives=ServerLogView, errors=(404,))
async def read_logs(
    server: ServerState,
    lines: Annotated[int, Query(ge=1, le=2000, description="How many lines are looked at, from the end.")] = 200,
    level: Annotated[LogLevel, Query(description="Only these, and what is graver.")] = "debug",
) -> ServerLogView:
    """The end of the server's log."""
    if server.app.config.settings.logs.to != "file":
        raise NotFound("The log is not kept in a file.", next=['logs.to = "file" in the config file'])
    file = log_file_path(server.app.config)
    found = [_parse_line(line) for line in await asyncio.to_thread(read_last_lines, file, lines)]
    grave = LOG_LEVELS[LOG_LEVELS.index(level) :]
    return ServerLogView(file=str(file), lines=[one for one in found if one.get("level") in grave])


@routes.post(
    "/logs/client",
    scope="read",
    gives=ClientErrorReceipt,
    status=202,
    example=ClientErrorBody(message="TypeError: x is undefined", where="chat"),
    answer=ClientErrorReceipt(request="4f1d2a3b4c5d6e7f"),
)
async def report_client_error(server: ServerState, principal: Principal, body: ClientErrorBody) -> ClientErrorReceipt:
    """Report an error of the browser app. A few in a minute are taken."""
    server.report_limiter.check(principal.id, "Too many reports.")
    fields = {
        "request": current_request_id(),
        "who": principal.name,
        "where": body.where,
        "stack": body.stack,
        "version": body.version,
    }
    logger.log(getattr(logging, body.level.upper()), "%s", body.message, extra={FIELDS: fields})
    return ClientErrorReceipt(request=current_request_id())


def _parse_line(line: bytes) -> dict[str, Any]:
    """A line as it was written; one that was cut off by a crash is told as text."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"level": "error", "event": line.decode(errors="replace")}
