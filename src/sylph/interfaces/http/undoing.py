"""Files of a session put back: shown first, then done."""

from typing import Annotated

from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.changes import FileLeft
from sylph.core.commands import Undo
from sylph.core.errors import UserError
from sylph.engine.undo.differences import FileDiff
from sylph.engine.undo.ledger import Wish
from sylph.interfaces.http.house import House
from sylph.interfaces.http.paging import SessionId
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.sessions import HERE, living
from sylph.interfaces.http.who import Who

routes = Routes("undo")
Name = Annotated[str, Query(max_length=60)]
Glob = Annotated[str, Meta(max_length=1000)]


class UndoBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Back to before a turn or a call, and all after it; without one, the last turn that changed something."""

    turn: Annotated[str, Meta(max_length=60)] = ""
    call: Annotated[str, Meta(max_length=60)] = ""
    files: Annotated[tuple[Glob, ...], Meta(max_length=100, description="Only paths that match.")] = ()
    force: Annotated[bool, Meta(description="Also what somebody else changed since.")] = False
    redo: Annotated[bool, Meta(description="Take the last undo back instead.")] = False


class UndoPlan(Struct, frozen=True, kw_only=True):
    """What an undo would do now: how files would change, and which would be left and why."""

    session: str
    turn: str
    calls: tuple[str, ...]
    files: tuple[FileDiff, ...]
    left: tuple[FileLeft, ...]


class Undone(Struct, frozen=True, kw_only=True):
    """What an undo came to. `resumed` if it was one that a crash had cut off, and nothing else was done."""

    session: str
    undo: str
    restored: tuple[str, ...]
    left: tuple[FileLeft, ...]
    resumed: bool


@routes.get("/sessions/{id}/undo", scope="read", gives=UndoPlan, errors=HERE)
async def plan(  # noqa: PLR0913 - each is a parameter of the query
    house: House,
    id: SessionId,
    turn: Name = "",
    call: Name = "",
    files: Annotated[list[str] | None, Query(max_length=100, description="Only paths that match.")] = None,
    force: Annotated[bool, Query(description="Also what somebody else changed since.")] = False,  # noqa: FBT002 - a query
    redo: Annotated[bool, Query(description="Take the last undo back instead.")] = False,  # noqa: FBT002 - a query
) -> UndoPlan:
    """Show what an undo would do. Nothing is done."""
    summary = await living(house, id)
    if summary.undoing:
        raise UserError("An undo was cut off.", kind="wrong_state", next=["POST …/undo finishes it first"])
    wish = Wish(turn=turn, call=call, files=tuple(files or ()), force=force, redo=redo)
    planned, changed = await house.app.runtime.plan_undo(summary.id, wish)
    return UndoPlan(session=summary.id, turn=planned.turn, calls=planned.calls, files=changed, left=planned.left)


@routes.post("/sessions/{id}/undo", scope="chat", gives=Undone, errors=HERE, example=UndoBody(turn="t2"))
async def undo(house: House, who: Who, id: SessionId, body: UndoBody) -> Undone:
    """Put files back as they were. What somebody else changed since is left, unless by `force`."""
    runtime = house.app.runtime
    summary = await living(house, id)
    wish = Undo(turn=body.turn, call=body.call, files=body.files, force=body.force, redo=body.redo, actor=who.actor)
    await runtime.send(summary.id, wish)
    done = await runtime.last_undo(summary.id)
    assert done
    return Undone(
        session=summary.id, undo=done.undo, restored=done.restored, left=done.left, resumed=bool(summary.undoing)
    )
