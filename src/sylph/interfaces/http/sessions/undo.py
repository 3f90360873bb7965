"""Files of a session put back: shown first, then done."""

from typing import Annotated

from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.commands import Undo
from sylph.core.errors import UserError
from sylph.core.facts.file_change import SkippedFile
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.turn_diff import FileDiff
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS, find_active_session
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("undo")
Name = Annotated[str, Query(max_length=60)]
Glob = Annotated[str, Meta(max_length=1000)]


class UndoBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Back to before a turn or a call, and all after it; without one, the last turn that changed something."""

    turn: Annotated[str, Meta(max_length=60)] = ""
    call: Annotated[str, Meta(max_length=60)] = ""
    files: Annotated[tuple[Glob, ...], Meta(max_length=100, description="Only paths that match.")] = ()
    force: Annotated[bool, Meta(description="Also what somebody else changed since.")] = False
    redo: Annotated[bool, Meta(description="Take the last undo back instead.")] = False


class UndoPlanView(Struct, frozen=True, kw_only=True):
    """What an undo would do now: how files would change, and which would be left and why."""

    session: str
    turn: str
    calls: tuple[str, ...]
    files: tuple[FileDiff, ...]
    left: tuple[SkippedFile, ...]


class UndoResultView(Struct, frozen=True, kw_only=True):
    """What an undo came to. `resumed` if it was one that a crash had cut off, and nothing else was done."""

    session: str
    undo: str
    restored: tuple[str, ...]
    left: tuple[SkippedFile, ...]
    resumed: bool


@routes.get("/sessions/{id}/undo", scope="read", gives=UndoPlanView, errors=SESSION_ERRORS)
async def get_undo_plan(  # noqa: PLR0913 - each is a parameter of the query
    server: ServerState,
    id: SessionId,
    turn: Name = "",
    call: Name = "",
    files: Annotated[list[str] | None, Query(max_length=100, description="Only paths that match.")] = None,
    force: Annotated[bool, Query(description="Also what somebody else changed since.")] = False,  # noqa: FBT002 - a query
    redo: Annotated[bool, Query(description="Take the last undo back instead.")] = False,  # noqa: FBT002 - a query
) -> UndoPlanView:
    """Show what an undo would do. Nothing is done."""
    summary = await find_active_session(server, id)
    if summary.undoing:
        raise UserError("An undo was cut off.", kind="wrong_state", next=["POST …/undo finishes it first"])
    wish = UndoRequest(turn=turn, call=call, files=tuple(files or ()), force=force, redo=redo)
    planned, changed = await server.app.runtime.plan_undo(summary.id, wish)
    return UndoPlanView(session=summary.id, turn=planned.turn, calls=planned.calls, files=changed, left=planned.left)


@routes.post(
    "/sessions/{id}/undo", scope="chat", gives=UndoResultView, errors=SESSION_ERRORS, example=UndoBody(turn="t2")
)
async def undo_changes(server: ServerState, principal: Principal, id: SessionId, body: UndoBody) -> UndoResultView:
    """Put files back as they were. What somebody else changed since is left, unless by `force`."""
    runtime = server.app.runtime
    summary = await find_active_session(server, id)
    wish = Undo(
        turn=body.turn, call=body.call, files=body.files, force=body.force, redo=body.redo, actor=principal.actor
    )
    await runtime.send(summary.id, wish)
    done = await runtime.last_undo(summary.id)
    assert done
    return UndoResultView(
        session=summary.id, undo=done.undo, restored=done.restored, left=done.left, resumed=bool(summary.undoing)
    )
