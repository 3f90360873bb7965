"""The turns of a session: listed, read whole, with what they changed and what their calls printed."""

from typing import Annotated

from fastapi import Path, Query
from msgspec import structs
from starlette.responses import Response

from sylph.core import facts
from sylph.core.errors import NotFound
from sylph.engine.folds import tasks
from sylph.engine.folds.tasks import TurnTask
from sylph.engine.runtime.runtime import Runtime
from sylph.engine.undo.turn_diff import TurnDiff
from sylph.interfaces.http.kit.paging import Cursor, Limit, SessionId, parse_number_cursor
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.views.turn_view import TurnRow, TurnView, TurnViewFold, turn_row
from sylph.tools.files.read import images

routes = RouteGroup("turns")
PAGE = 500
PDF = "application/pdf"
TurnId = Annotated[str, Path(max_length=30, description="As `t2`.")]
CallId = Annotated[str, Path(max_length=60, description="As `t2_c1`.")]


@routes.get("/sessions/{id}/turns", scope="read", gives=ListPage[TurnRow], errors=SESSION_ERRORS)
async def list_turns(server: ServerState, id: SessionId, limit: Limit = 50, cursor: Cursor = "") -> ListPage[TurnRow]:
    """List the turns of a session, the oldest first."""
    session, after = (await server.app.runtime.find_session(id)).id, parse_number_cursor(cursor)
    found = [task for task in tasks.read_tasks(server.app.runtime.log, session) if task.seq > after]
    more = len(found) > limit
    return ListPage(items=[turn_row(task) for task in found[:limit]], next=str(found[limit - 1].seq) if more else None)


@routes.get("/sessions/{id}/turns/{turn}", scope="read", gives=TurnView, errors=SESSION_ERRORS)
async def get_turn(server: ServerState, id: SessionId, turn: TurnId) -> TurnView:
    """Get a turn with its messages, calls, outputs and changes."""
    session = (await server.app.runtime.find_session(id)).id
    for task in tasks.read_tasks(server.app.runtime.log, session):
        if task.turn == turn:
            return await build_turn_view(server.app.runtime, task)
    raise NotFound(f"There is no turn {turn!r}.", next=["GET …/turns"])


@routes.get("/sessions/{id}/changes", scope="read", gives=ListPage[TurnDiff], errors=SESSION_ERRORS)
async def list_changes(
    server: ServerState,
    id: SessionId,
    turn: Annotated[str, Query(max_length=30, description="Only of this turn.")] = "",
) -> ListPage[TurnDiff]:
    """List what each turn changed in files, with the differences as far as contents are kept."""
    found = await server.app.runtime.list_changes((await server.app.runtime.find_session(id)).id)
    return ListPage(items=[each for each in found if turn in ("", each.turn)])


@routes.get("/sessions/{id}/calls/{call}/output", scope="read", media="text/plain", errors=SESSION_ERRORS)
async def get_call_output(server: ServerState, id: SessionId, call: CallId) -> Response:
    """Read the whole output of a call, as text."""
    session = (await server.app.runtime.find_session(id)).id
    whole = await server.app.runtime.full_output(session, call)
    if whole is None:
        raise NotFound(f"There is no output of a call {call!r}.", next=["GET …/turns lists them"])
    return Response(whole, media_type="text/plain")


@routes.get("/sessions/{id}/images/{digest}", scope="read", media="application/octet-stream", errors=SESSION_ERRORS)
async def get_image(server: ServerState, id: SessionId, digest: Annotated[str, Path(max_length=128)]) -> Response:
    """Read a picture or document of a session, by the digest its messages and calls name."""
    session = (await server.app.runtime.find_session(id)).id
    data = server.app.runtime.log.load_blob(session, digest) or b""
    media = PDF if data.startswith(b"%PDF-") else images.media_of(data[:16])
    if not media:
        raise NotFound(f"There is no picture {digest!r}.", next=["GET …/turns/{turn} names them"])
    shown = "attachment" if media == PDF else "inline"
    headers = {"Content-Disposition": shown, "Cache-Control": "private, immutable, max-age=31536000"}
    return Response(data, headers=headers, media_type=media)


async def build_turn_view(runtime: Runtime, task: TurnTask) -> TurnView:
    known = (event.body for event in runtime.log.read_events_of(task.session, [facts.InputReceived]))
    folded = TurnViewFold({body.id: body for body in known if isinstance(body, facts.InputReceived)})
    after, over = task.seq - 1, False
    while not over and (page := await runtime.read_events(task.session, after=after, limit=PAGE)):
        after = page[-1].seq
        mine = [event for event in page if event.turn == task.turn]
        folded.add_events(mine)
        over = any(isinstance(event.body, facts.TurnEnded) for event in mine)
    changed = [each for each in await runtime.list_changes(task.session) if each.turn == task.turn]
    return TurnView(
        **structs.asdict(turn_row(task, whole=True)),
        output=task.answer,
        messages=tuple(folded.said),
        calls=tuple(folded.calls.values()),
        changes=changed[0] if changed else None,
    )
