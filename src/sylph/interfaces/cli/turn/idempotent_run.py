"""`sylph --key K "task"`: one turn however often it is sent, its answer each time."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from sylph.app import App
from sylph.core.commands import Continue, Send
from sylph.core.errors import LogConflict, SessionBusy, UserError
from sylph.core.events import Event
from sylph.core.facts.turn import InputCancelled, InputDelivered, TurnEnded, TurnStarted
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.runtime.idempotency import KeyedMessage
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.cli.kit.attachment_files import read_attachments
from sylph.interfaces.cli.kit.options import TaskOptions
from sylph.interfaces.cli.turn.follower import TurnProgress
from sylph.interfaces.cli.turn.runner import TerminalTurnRunner
from sylph.interfaces.text.render import styled_line

LONGEST_KEY = 200
POLL_SECONDS = 0.05

SessionFactory = Callable[[], Awaitable[SessionState]]


class TrackedTurn(Struct):
    """The turn that a message reached, and whether it is over."""

    id: str
    turn: str = ""
    over: bool = False

    def apply_event(self, event: Event) -> None:
        match event.body:
            case TurnStarted(input=id) | InputDelivered(id=id) if id == self.id:
                self.turn = event.turn
            case TurnEnded() if event.turn == self.turn:
                self.over = True
            case InputCancelled(id=id) if id == self.id:
                raise UserError("The task with this key was taken back.", kind="withdrawn", next=["give another key"])
            case _:
                pass


async def run_once(app: App, options: TaskOptions, text: str, make: SessionFactory) -> int:
    """Sends the task, unless it was sent before under this key; then its turn is gone on with, or only shown."""
    key, files = validate_key(options.key or ""), read_attachments(options.attach)
    runner = TerminalTurnRunner(app, quiet=options.quiet, as_json=options.as_json)
    # Whoever comes at the same moment with the same key waits here until it is known where the task is kept.
    async with app.runtime.lock_idempotency_key(key):
        session = (await app.runtime.find_session(options.session)).id if options.session else ""
        known = app.runtime.find_keyed_message(key, session)
        summary = None if known else await make()
        if summary:
            app.unlock_credentials(summary.model)
            await app.runtime.send(summary.id, Send(text=text, key=key, dry_run=options.dry_run, files=files))
    if summary:
        return await runner.run_turn(summary, None)
    assert known
    # What was kept is kept without its secrets.
    if known.text not in (text, app.runtime.redactor.redact_text(text)):
        raise UserError(
            f"The key {key!r} belongs to another task.",
            kind="key_reused",
            details={"session": known.session},
            next=["give another key", f"sylph session show {known.session}"],
        )
    runner.print_lines(styled_line(f"sent before with this key: {known.session}", "dim"))
    return await join_turn(app.runtime, runner, known)


def validate_key(key: str) -> str:
    if not key.strip() or len(key) > LONGEST_KEY:
        raise UserError(f"A key has 1 to {LONGEST_KEY} characters.", next=["sylph run --help"])
    return key


async def join_turn(runtime: Runtime, runner: TerminalTurnRunner, known: KeyedMessage) -> int:
    """Follows the turn of a message to its end, whoever works on it; if nobody does, it is gone on with here."""
    course, mine = TurnProgress(await state_before(runtime, known)), TrackedTurn(known.id)
    runner.begin_view(course.now)
    while not mine.over:
        held = runtime.holder_pid(known.session)
        page = await runtime.read_events(known.session, after=course.now.seq)
        for event in page:
            mine.apply_event(event)
            runner.show_event(event, course)
            if mine.over:
                break
        if page:
            continue
        if held:
            await asyncio.sleep(POLL_SECONDS)
            continue
        try:
            return await runner.run_turn(course.now, Continue())
        except (SessionBusy, LogConflict):
            # Somebody was faster; then they are watched.
            await asyncio.sleep(POLL_SECONDS)
    return runner.result_code(course)


async def state_before(runtime: Runtime, known: KeyedMessage) -> SessionState:
    """The session as it was when the message came. What made it for the message belongs to that."""
    state = SessionState(id=known.session)
    for event in await runtime.read_events(known.session, limit=known.seq - 1) if known.seq > 2 else ():
        SESSION_FOLD.step(state, event)
    return state
