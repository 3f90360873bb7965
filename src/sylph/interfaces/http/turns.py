"""The turns of a session: listed, read whole, with what they changed and what their calls printed."""

from typing import Annotated

from fastapi import Path, Query
from msgspec import structs
from starlette.responses import Response

from sylph.core import facts
from sylph.core.errors import NotFound
from sylph.engine import tasks
from sylph.engine.runtime import Runtime
from sylph.engine.tasks import Task
from sylph.engine.undo.differences import TurnDiff
from sylph.interfaces.http.house import House
from sylph.interfaces.http.paging import Cursor, Limit, SessionId, number_of
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.sessions import HERE
from sylph.interfaces.http.turn_view import Folded, TurnRow, TurnView, row
from sylph.tools import images

routes = Routes("turns")
PAGE = 500
PDF = "application/pdf"
TurnId = Annotated[str, Path(max_length=30, description="As `t2`.")]
CallId = Annotated[str, Path(max_length=60, description="As `t2_c1`.")]


@routes.get("/sessions/{id}/turns", scope="read", gives=Page[TurnRow], errors=HERE)
async def list_(house: House, id: SessionId, limit: Limit = 50, cursor: Cursor = "") -> Page[TurnRow]:
    """List the turns of a session, the oldest first."""
    session, after = (await house.app.runtime.find(id)).id, number_of(cursor)
    found = [task for task in tasks.read(house.app.runtime.log, session) if task.seq > after]
    more = len(found) > limit
    return Page(items=[row(task) for task in found[:limit]], next=str(found[limit - 1].seq) if more else None)


@routes.get("/sessions/{id}/turns/{turn}", scope="read", gives=TurnView, errors=HERE)
async def get(house: House, id: SessionId, turn: TurnId) -> TurnView:
    """Get a turn with its messages, calls, outputs and changes."""
    session = (await house.app.runtime.find(id)).id
    for task in tasks.read(house.app.runtime.log, session):
        if task.turn == turn:
            return await view(house.app.runtime, task)
    raise NotFound(f"There is no turn {turn!r}.", next=["GET …/turns"])


@routes.get("/sessions/{id}/changes", scope="read", gives=Page[TurnDiff], errors=HERE)
async def changes(
    house: House, id: SessionId, turn: Annotated[str, Query(max_length=30, description="Only of this turn.")] = ""
) -> Page[TurnDiff]:
    """List what each turn changed in files, with the differences as far as contents are kept."""
    found = await house.app.runtime.changes((await house.app.runtime.find(id)).id)
    return Page(items=[each for each in found if turn in ("", each.turn)])


@routes.get("/sessions/{id}/calls/{call}/output", scope="read", media="text/plain", errors=HERE)
async def output(house: House, id: SessionId, call: CallId) -> Response:
    """Read the whole output of a call, as text."""
    session = (await house.app.runtime.find(id)).id
    whole = await house.app.runtime.whole(session, call)
    if whole is None:
        raise NotFound(f"There is no output of a call {call!r}.", next=["GET …/turns lists them"])
    return Response(whole, media_type="text/plain")


@routes.get("/sessions/{id}/images/{digest}", scope="read", media="application/octet-stream", errors=HERE)
async def image(house: House, id: SessionId, digest: Annotated[str, Path(max_length=128)]) -> Response:
    """Read a picture or document of a session, by the digest its messages and calls name."""
    session = (await house.app.runtime.find(id)).id
    data = house.app.runtime.log.blob(session, digest) or b""
    media = PDF if data.startswith(b"%PDF-") else images.media_of(data[:16])
    if not media:
        raise NotFound(f"There is no picture {digest!r}.", next=["GET …/turns/{turn} names them"])
    shown = "attachment" if media == PDF else "inline"
    headers = {"Content-Disposition": shown, "Cache-Control": "private, immutable, max-age=31536000"}
    return Response(data, headers=headers, media_type=media)


async def view(runtime: Runtime, task: Task) -> TurnView:
    known = (event.body for event in runtime.log.of(task.session, [facts.InputReceived]))
    folded = Folded({body.id: body for body in known if isinstance(body, facts.InputReceived)})
    after, over = task.seq - 1, False
    while not over and (page := await runtime.read(task.session, after=after, limit=PAGE)):
        after = page[-1].seq
        mine = [event for event in page if event.turn == task.turn]
        folded.see(mine)
        over = any(isinstance(event.body, facts.TurnEnded) for event in mine)
    changed = [each for each in await runtime.changes(task.session) if each.turn == task.turn]
    return TurnView(
        **structs.asdict(row(task, whole=True)),
        output=task.answer,
        messages=tuple(folded.said),
        calls=tuple(folded.calls.values()),
        changes=changed[0] if changed else None,
    )
