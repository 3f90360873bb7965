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
from sylph.engine import tasks
from sylph.engine.cards import Card
from sylph.engine.summary import Summary
from sylph.engine.tasks import Task
from sylph.interfaces.http.acts import ended
from sylph.interfaces.http.house import House
from sylph.interfaces.http.idempotency import IdempotencyKey, once
from sylph.interfaces.http.messages import Attachments, Key, Text, one_key, pictures
from sylph.interfaces.http.paging import Cursor, Limit, bad_cursor
from sylph.interfaces.http.route import Page, Routes, respond
from sylph.interfaces.http.session_edit import BEGINS, SessionBody, new_session
from sylph.interfaces.http.session_view import Question, question
from sylph.interfaces.http.sessions import HERE
from sylph.interfaces.http.turn_view import TurnRow, row
from sylph.interfaces.http.who import Who

routes = Routes("tasks")
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
    questions: tuple[Question, ...]


class _Made(Struct, frozen=True):
    id: str


@routes.post(
    "/tasks",
    scope="chat",
    also=BEGINS,
    gives=TaskView,
    status=201,
    errors=(404, 409, 413, 502, 503),
    attaches=True,
    example=TaskBody(text="Say what this project does.", mode="plan"),
)
async def create(
    house: House, who: Who, request: Request, body: TaskBody, wait: Wait = 0, idempotency_key: IdempotencyKey = ""
) -> Response:
    """Have something done in a session of its own. The id it is answered with is the one that runs."""
    key = one_key(body.key, idempotency_key)
    if not body.text.strip() and not body.attachments:
        raise UserError("There is nothing in that task.", kind="empty_message", next=["say what is to be done"])
    files = pictures(body.attachments)
    new = SessionBody(**{name: getattr(body, name) for name in SessionBody.__struct_fields__})

    async def make(id: str) -> _Made:
        session = await new_session(house, who, new, id)
        said = commands.Send(text=body.text, key=key, actor=who.actor, dry_run=body.dry_run, files=files)
        await house.app.runtime.send(session, said)
        return _Made(session)

    made = await once(request, who, key, structs.replace(body, key=""), make)
    session = _id(made)
    await _until(house, session, turn_id(1), wait)
    shown = respond(await _view(house, f"{session}.1"), made.status_code, request)
    shown.headers.update({name: value for name, value in made.headers.items() if name.startswith("idempotency")})
    return shown


@routes.get("/tasks", scope="read", gives=Page[TurnRow], errors=HERE)
async def list_(
    house: House,
    limit: Limit = 50,
    cursor: Cursor = "",
    session: Annotated[str, Query(max_length=100, description="Only those of this session.")] = "",
) -> Page[TurnRow]:
    """List tasks, the latest first: every turn of every session, however it was begun."""
    runtime, last = house.app.runtime, _place(cursor)
    only = (await runtime.find(session)).id if session else ""
    cards = [card for card in await runtime.cards.all() if not card.deleted and only in ("", card.id)]
    cards.sort(key=lambda card: card.updated, reverse=True)
    found: list[Task] = []
    for number, card in enumerate(cards):
        if len(found) > limit and sorted(map(_order, found))[-limit - 1][0] > card.updated:
            # No turn of those that follow can be as late as these.
            break
        found += [task for task in _own(house, card) if last is None or _order(task) < last]
        if number % 20 == 19:
            await asyncio.sleep(0)
    found.sort(key=_order, reverse=True)
    shown = found[:limit]
    more = f"{shown[-1].started}.{shown[-1].id}" if len(found) > limit else None
    return Page(items=[row(task) for task in shown], next=more)


@routes.get("/tasks/{id}", scope="read", gives=TaskView, errors=HERE)
async def get(house: House, id: TaskId, wait: Wait = 0) -> TaskView:
    """Get a task with its output."""
    summary, turn = await _named(house, id)
    await _until(house, summary.id, turn, wait)
    return await _view(house, f"{summary.id}.{turn.removeprefix('t')}")


@routes.post("/tasks/{id}/cancel", scope="chat", gives=TaskView, errors=HERE)
async def cancel(house: House, id: TaskId) -> TaskView:
    """End a task and whatever it runs; answered when it has ended."""
    summary, turn = await _named(house, id)
    task = await _view(house, f"{summary.id}.{turn.removeprefix('t')}")
    if task.outcome == "queued":
        message = waiting(summary)[int(turn.removeprefix("t")) - summary.turns - 1]
        await house.app.runtime.send(summary.id, commands.Withdraw(id=message))
        return structs.replace(task, outcome="cancelled")
    if task.outcome != "open":
        raise UserError(f"The task has ended already: {task.outcome}.", kind="wrong_state", next=[f"GET /tasks/{id}"])
    await ended(house, summary.id, "the task was cancelled")
    return await _view(house, task.id)


async def _named(house: House, id: str) -> tuple[Summary, str]:
    """The session of a task and its turn. Raises NotFound where there is none, and none to come."""
    session, _, number = id.rpartition(".")
    if not session or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise NotFound(f"There is no task {id!r}.", next=["GET /tasks"])
    summary = await house.app.runtime.find(session)
    at = int(number)
    if not 1 <= at <= summary.turns + len(waiting(summary)):
        raise NotFound(f"There is no task {id!r}.", next=[f"GET /tasks?session={summary.id}"])
    return summary, turn_id(at)


async def _view(house: House, id: str) -> TaskView:
    summary, turn = await _named(house, id)
    found = [task for task in tasks.read(house.app.runtime.log, summary.id) if task.turn == turn]
    open = summary.open_turn == turn
    asked = tuple(question(summary, each) for each in summary.asked.values()) if open else ()
    task = found[0] if found else Task(f"{summary.id}.{turn.removeprefix('t')}", summary.id, turn, "", 0)
    if not found:
        task.outcome = "queued"
        task.text = summary.queue[waiting(summary)[int(turn.removeprefix("t")) - summary.turns - 1]]
    return TaskView(**structs.asdict(row(task, whole=True)), output=task.answer, questions=asked)


def waiting(summary: Summary) -> list[str]:
    """The messages that will begin turns of their own: all others reach the turn that is open, or the next one."""
    first = [] if summary.open_turn else list(summary.queue)[:1]
    return [*first, *(id for id in summary.follows if id in summary.queue and id not in first)]


async def _until(house: House, session: str, turn: str, seconds: float) -> None:
    """Returns when a turn has ended or asks something, and after so many seconds at the latest."""
    if not seconds:
        return
    runtime = house.app.runtime

    async def over() -> None:
        watched = runtime.watch(session)
        try:
            async for event in watched:
                if event.type in ("turn.ended", "asked") and event.turn == turn:
                    return
        finally:
            await watched.aclose()

    # Whoever waits is answered when the server ends, too.
    waits = [asyncio.create_task(over()), asyncio.create_task(house.closing.wait())]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


def _own(house: House, card: Card) -> list[Task]:
    """The turns that a session itself has run: what a fork has copied is another's."""
    return [task for task in tasks.read(house.app.runtime.log, card.id) if task.seq > card.forked_at]


def _order(task: Task) -> tuple[int, str]:
    return task.started, task.id


def _place(cursor: str) -> tuple[int, str] | None:
    at, _, id = cursor.partition(".")
    if cursor and not (at.isascii() and at.isdecimal() and len(at) < 19 and id):
        raise bad_cursor(cursor)
    return (int(at), id) if cursor else None


def _id(made: Response) -> str:
    return msgspec.json.decode(bytes(made.body), type=_Made).id
