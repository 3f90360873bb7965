"""The server's own log over HTTP: its end for who administers, and a place for what goes wrong in the browser."""

import asyncio
import logging
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.errors import NotFound
from sylph.interfaces.http.house import House
from sylph.interfaces.http.journal import FIELDS, file_of, tail
from sylph.interfaces.http.numbered import current
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.who import Who

routes = Routes("logs")
logger = logging.getLogger("sylph.client")
Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[str, ...] = ("debug", "info", "warning", "error", "critical")


class LogView(Struct, frozen=True, kw_only=True):
    file: str
    lines: list[dict[str, Any]]
    """The oldest first."""


class ClientBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that went wrong in a browser. What it is about, and no content of anybody's."""

    message: Annotated[str, Meta(min_length=1, max_length=2000)]
    level: Level = "error"
    where: Annotated[str, Meta(max_length=200, description="The page or part.")] = ""
    stack: Annotated[str, Meta(max_length=8000)] = ""
    version: Annotated[str, Meta(max_length=100)] = ""


class Noted(Struct, frozen=True, kw_only=True):
    request: str
    """By this it is found in the log."""


@routes.get("/logs", scope="admin", gives=LogView, errors=(404,))
async def tail_(
    house: House,
    lines: Annotated[int, Query(ge=1, le=2000, description="How many lines are looked at, from the end.")] = 200,
    level: Annotated[Level, Query(description="Only these, and what is graver.")] = "debug",
) -> LogView:
    """The end of the server's log."""
    if house.app.config.settings.logs.to != "file":
        raise NotFound("The log is not kept in a file.", next=['logs.to = "file" in the config file'])
    file = file_of(house.app.config)
    found = [_line(line) for line in await asyncio.to_thread(tail, file, lines)]
    grave = LEVELS[LEVELS.index(level) :]
    return LogView(file=str(file), lines=[one for one in found if one.get("level") in grave])


@routes.post(
    "/logs/client",
    scope="read",
    gives=Noted,
    status=202,
    example=ClientBody(message="TypeError: x is undefined", where="chat"),
    answer=Noted(request="4f1d2a3b4c5d6e7f"),
)
async def client(house: House, who: Who, body: ClientBody) -> Noted:
    """Report an error of the browser app. A few in a minute are taken."""
    house.reports.check(who.id, "Too many reports.")
    fields = {"request": current(), "who": who.name, "where": body.where, "stack": body.stack, "version": body.version}
    logger.log(getattr(logging, body.level.upper()), "%s", body.message, extra={FIELDS: fields})
    return Noted(request=current())


def _line(line: bytes) -> dict[str, Any]:
    """A line as it was written; one that was cut off by a crash is told as text."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"level": "error", "event": line.decode(errors="replace")}
