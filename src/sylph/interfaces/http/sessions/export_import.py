"""Sessions out and in, as the lines that `sylph session export` writes."""

import hashlib
import tempfile
from collections.abc import AsyncGenerator
from typing import IO, Annotated

from fastapi import Query, Request
from msgspec import Struct
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from sylph.core.errors import UserError
from sylph.interfaces.http.kit.idempotency import IdempotencyKey, respond_once
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("transfer")
NDJSON = "application/x-ndjson"
IN_MEMORY = 1_000_000


class ImportedView(Struct, frozen=True, kw_only=True):
    """A session that was brought in (201); `known` if it was here already, the same (200)."""

    session: str
    events: int
    blobs: int
    known: bool


@routes.get("/sessions/{id}/export", scope="read", media=NDJSON, errors=SESSION_ERRORS)
async def export_session(server: ServerState, id: SessionId) -> Response:
    """Read a session whole, with its hashes and outputs: one JSON document per line, ready for the import."""
    session = (await server.app.runtime.find_session(id)).id
    headers = {"Content-Disposition": f'attachment; filename="{session}.ndjson"'}
    return StreamingResponse(_export_chunks(server, session), media_type=NDJSON, headers=headers)


@routes.post(
    "/sessions/import",
    scope="admin",
    gives=ImportedView,
    status=201,
    other=(200,),
    errors=(409, 413),
    upload=True,
    accepts=NDJSON,
)
async def import_session(
    server: ServerState,
    principal: Principal,
    request: Request,
    new_id: Annotated[bool, Query(description="As a session of its own, under a new id.")] = False,  # noqa: FBT002 - a query
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Bring in an exported session, whole or not at all: the body is the export's lines."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(server.app.config.data)) as file:
        print = await _receive_body(request, file)

        async def bring(id: str) -> ImportedView:
            file.seek(0)
            done = await server.app.runtime.import_session(file, new_id=new_id, id=id)
            return ImportedView(session=done.session, events=done.events, blobs=done.blobs, known=done.known)

        wanted = print + (b"new" if new_id else b"")
        return await respond_once(request, principal, idempotency_key, wanted, bring, status=_import_status)


def _import_status(made: ImportedView) -> int:
    return 200 if made.known else 201


async def _receive_body(request: Request, file: IO[bytes]) -> bytes:
    """Writes the body away as it comes; returns a print of it."""
    print = hashlib.blake2b(digest_size=32)
    try:
        async for piece in request.stream():
            print.update(piece)
            file.write(piece)
    except ClientDisconnect as error:
        raise UserError("The body ended before it was whole.", kind="bad_body", next=["send it again"]) from error
    return print.digest()


async def _export_chunks(server: ServerState, session: str) -> AsyncGenerator[bytes, None]:
    """Lines together in pieces: each piece is a step through the whole server."""
    waiting, size = list[bytes](), 0
    async for line in server.app.runtime.export_session(session):
        waiting.append(line)
        size += len(line)
        if size >= 65_536:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
