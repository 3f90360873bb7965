"""Tasks: one message, one answer. A session is made for each, so that nothing of one leaks into another."""

import asyncio
from typing import Annotated

import msgspec
from fastapi import Path, Query, Request
from msgspec import Meta, Struct, structs
from starlette.responses import Response

from sylph.core import commands
from sylph.core.errors import NotFound, UserError
from sylph.core.ids import turn_id
from sylph.engine.folds import tasks
from sylph.engine.folds.session_list import SessionListItem
from sylph.engine.folds.session_state import SessionState
from sylph.engine.folds.tasks import TurnTask
from sylph.interfaces.http.kit.idempotency import IdempotencyKey, respond_once
from sylph.interfaces.http.kit.paging import Cursor, Limit, bad_cursor_error
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import ListPage, RouteGroup, to_response
from sylph.interfaces.http.sessions.messages import Attachments, Key, Text, decode_attachments, pick_idempotency_key
from sylph.interfaces.http.sessions.session_edit import NEW_SESSION_SCOPE, SessionBody, make_session
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS
from sylph.interfaces.http.sessions.turn_control import end_turn
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.views.session_view import SessionQuestion, question_view
from sylph.interfaces.http.views.turn_view import TurnRow, turn_row

routes = RouteGroup("tasks")
LONGEST_WAIT = 600.0
TaskId = Annotated[str, Path(max_length=130, description="SESSION.NUMBER, as it was answered.")]
Wait = Annotated[
    float,
    Query(
        ge=0,
        le=LONGEST_WAIT,
        description="Answer when it has ended or asks something, after so many seconds at the latest.",
    ),
]


class TaskBody(SessionBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be done, and what the session is to be that does it."""

    text: Text
    key: Key = ""
    dry_run: Annotated[bool, Meta(description="Show what would be done; change nothing.")] = False
    attachments: Attachments = ()


class TaskView(TurnRow, frozen=True, kw_only=True):
    """A task. `output` is the answer; while it is `open` it is what the model has said last."""

    output: str
    questions: tuple[SessionQuestion, ...]


class _CreatedSession(Struct, frozen=True):
    id: str


@routes.post(
    "/tasks",
    scope="chat",
    also=NEW_SESSION_SCOPE,
    gives=TaskView,
    status=201,
    errors=(404, 409, 413, 502, 503),
    attaches=True,
    example=TaskBody(text="Say what this project does.", mode="plan"),
)
async def create_task(
    server: ServerState,
    principal: Principal,
    request: Request,
    body: TaskBody,
    wait: Wait = 0,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Have something done in a session of its own. The id it is answered with is the one that runs."""
    key = pick_idempotency_key(body.key, idempotency_key)
    if not body.text.strip() and not body.attachments:
        raise UserError("There is nothing in that task.", kind="empty_message", next=["say what is to be done"])
    files = decode_attachments(body.attachments)
    new = SessionBody(**{name: getattr(body, name) for name in SessionBody.__struct_fields__})

    async def make(id: str) -> _CreatedSession:
        session = await make_session(server, principal, new, id)
        said = commands.Send(text=body.text, key=key, actor=principal.actor, dry_run=body.dry_run, files=files)
        await server.app.runtime.send(session, said)
        return _CreatedSession(session)

    made = await respond_once(request, principal, key, structs.replace(body, key=""), make)
    session = _session_id(made)
    await _wait_for_turn(server, session, turn_id(1), wait)
    shown = to_response(await _task_view(server, f"{session}.1"), made.status_code, request)
    shown.headers.update({name: value for name, value in made.headers.items() if name.startswith("idempotency")})
    return shown


@routes.get("/tasks", scope="read", gives=ListPage[TurnRow], errors=SESSION_ERRORS)
async def list_tasks(
    server: ServerState,
    limit: Limit = 50,
    cursor: Cursor = "",
    session: Annotated[str, Query(max_length=100, description="Only those of this session.")] = "",
) -> ListPage[TurnRow]:
    """List tasks, the latest first: every turn of every session, however it was begun."""
    runtime, last = server.app.runtime, _parse_cursor(cursor)
    only = (await runtime.find_session(session)).id if session else ""
    cards = [card for card in await runtime.cards.load_items() if not card.deleted and only in ("", card.id)]
    cards.sort(key=lambda card: card.updated, reverse=True)
    found: list[TurnTask] = []
    for number, card in enumerate(cards):
        if len(found) > limit and sorted(map(_sort_key, found))[-limit - 1][0] > card.updated:
            # No turn of those that follow can be as late as these.
            break
        found += [task for task in _own_turns(server, card) if last is None or _sort_key(task) < last]
        if number % 20 == 19:
            await asyncio.sleep(0)
    found.sort(key=_sort_key, reverse=True)
    shown = found[:limit]
    more = f"{shown[-1].started}.{shown[-1].id}" if len(found) > limit else None
    return ListPage(items=[turn_row(task) for task in shown], next=more)


@routes.get("/tasks/{id}", scope="read", gives=TaskView, errors=SESSION_ERRORS)
async def get_task(server: ServerState, id: TaskId, wait: Wait = 0) -> TaskView:
    """Get a task with its output."""
    summary, turn = await _find_task(server, id)
    await _wait_for_turn(server, summary.id, turn, wait)
    return await _task_view(server, f"{summary.id}.{turn.removeprefix('t')}")


@routes.post("/tasks/{id}/cancel", scope="chat", gives=TaskView, errors=SESSION_ERRORS)
async def cancel_task(server: ServerState, id: TaskId) -> TaskView:
    """End a task and whatever it runs; answered when it has ended."""
    summary, turn = await _find_task(server, id)
    task = await _task_view(server, f"{summary.id}.{turn.removeprefix('t')}")
    if task.outcome == "queued":
        message = waiting_messages(summary)[int(turn.removeprefix("t")) - summary.turns - 1]
        await server.app.runtime.send(summary.id, commands.Withdraw(id=message))
        return structs.replace(task, outcome="cancelled")
    if task.outcome != "open":
        raise UserError(f"The task has ended already: {task.outcome}.", kind="wrong_state", next=[f"GET /tasks/{id}"])
    await end_turn(server, summary.id, "the task was cancelled")
    return await _task_view(server, task.id)


async def _find_task(server: ServerState, id: str) -> tuple[SessionState, str]:
    """The session of a task and its turn. Raises NotFound where there is none, and none to come."""
    session, _, number = id.rpartition(".")
    if not session or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise NotFound(f"There is no task {id!r}.", next=["GET /tasks"])
    summary = await server.app.runtime.find_session(session)
    at = int(number)
    if not 1 <= at <= summary.turns + len(waiting_messages(summary)):
        raise NotFound(f"There is no task {id!r}.", next=[f"GET /tasks?session={summary.id}"])
    return summary, turn_id(at)


async def _task_view(server: ServerState, id: str) -> TaskView:
    summary, turn = await _find_task(server, id)
    found = [task for task in tasks.read_tasks(server.app.runtime.log, summary.id) if task.turn == turn]
    open = summary.open_turn == turn
    asked = tuple(question_view(summary, each) for each in summary.asked.values()) if open else ()
    task = found[0] if found else TurnTask(f"{summary.id}.{turn.removeprefix('t')}", summary.id, turn, "", 0)
    if not found:
        task.outcome = "queued"
        task.text = summary.queue[waiting_messages(summary)[int(turn.removeprefix("t")) - summary.turns - 1]]
    return TaskView(**structs.asdict(turn_row(task, whole=True)), output=task.answer, questions=asked)


def waiting_messages(summary: SessionState) -> list[str]:
    """The messages that will begin turns of their own: all others reach the turn that is open, or the next one."""
    first = [] if summary.open_turn else list(summary.queue)[:1]
    return [*first, *(id for id in summary.follows if id in summary.queue and id not in first)]


async def _wait_for_turn(server: ServerState, session: str, turn: str, seconds: float) -> None:
    """Returns when a turn has ended or asks something, and after so many seconds at the latest."""
    if not seconds:
        return
    runtime = server.app.runtime

    async def over() -> None:
        watched = runtime.watch(session)
        try:
            async for event in watched:
                if event.type in ("turn.ended", "asked") and event.turn == turn:
                    return
        finally:
            await watched.aclose()

    # Whoever waits is answered when the server ends, too.
    waits = [asyncio.create_task(over()), asyncio.create_task(server.closing.wait())]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


def _own_turns(server: ServerState, card: SessionListItem) -> list[TurnTask]:
    """The turns that a session itself has run: what a fork has copied is another's."""
    return [task for task in tasks.read_tasks(server.app.runtime.log, card.id) if task.seq > card.forked_at]


def _sort_key(task: TurnTask) -> tuple[int, str]:
    return task.started, task.id


def _parse_cursor(cursor: str) -> tuple[int, str] | None:
    at, _, id = cursor.partition(".")
    if cursor and not (at.isascii() and at.isdecimal() and len(at) < 19 and id):
        raise bad_cursor_error(cursor)
    return (int(at), id) if cursor else None


def _session_id(made: Response) -> str:
    return msgspec.json.decode(bytes(made.body), type=_CreatedSession).id
