"""`sylph --key K "task"`: one turn however often it is sent, its answer each time."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from sylph.app import App
from sylph.core.commands import Continue, Send
from sylph.core.errors import Conflict, SessionBusy, UserError
from sylph.core.events import Event
from sylph.core.facts import InputCancelled, InputDelivered, TurnEnded, TurnStarted
from sylph.engine.keyed import Message
from sylph.engine.runtime import Runtime
from sylph.engine.summary import SUMMARY, Summary
from sylph.interfaces.cli.attach import attached
from sylph.interfaces.cli.follow import Course
from sylph.interfaces.cli.options import Options
from sylph.interfaces.cli.runner import Runner
from sylph.interfaces.render import line

LONGEST = 200
BEAT = 0.05

Make = Callable[[], Awaitable[Summary]]


class Mine(Struct):
    """The turn that a message reached, and whether it is over."""

    id: str
    turn: str = ""
    over: bool = False

    def see(self, event: Event) -> None:
        match event.body:
            case TurnStarted(input=id) | InputDelivered(id=id) if id == self.id:
                self.turn = event.turn
            case TurnEnded() if event.turn == self.turn:
                self.over = True
            case InputCancelled(id=id) if id == self.id:
                raise UserError("The task with this key was taken back.", kind="withdrawn", next=["give another key"])
            case _:
                pass


async def perform(app: App, options: Options, text: str, make: Make) -> int:
    """Sends the task, unless it was sent before under this key; then its turn is gone on with, or only shown."""
    key, files = checked(options.key or ""), attached(options.attach)
    runner = Runner(app, quiet=options.quiet, as_json=options.as_json)
    # Whoever comes at the same moment with the same key waits here until it is known where the task is kept.
    async with app.runtime.sole(key):
        session = (await app.runtime.find(options.session)).id if options.session else ""
        known = app.runtime.message(key, session)
        summary = None if known else await make()
        if summary:
            app.unlock(summary.model)
            await app.runtime.send(summary.id, Send(text=text, key=key, dry_run=options.dry_run, files=files))
    if summary:
        return await runner.turn(summary, None)
    assert known
    # What was kept is kept without its secrets.
    if known.text not in (text, app.runtime.veil.text(text)):
        raise UserError(
            f"The key {key!r} belongs to another task.",
            kind="key_reused",
            details={"session": known.session},
            next=["give another key", f"sylph session show {known.session}"],
        )
    runner.note(line(f"sent before with this key: {known.session}", "dim"))
    return await join(app.runtime, runner, known)


def checked(key: str) -> str:
    if not key.strip() or len(key) > LONGEST:
        raise UserError(f"A key has 1 to {LONGEST} characters.", next=["sylph run --help"])
    return key


async def join(runtime: Runtime, runner: Runner, known: Message) -> int:
    """Follows the turn of a message to its end, whoever works on it; if nobody does, it is gone on with here."""
    course, mine = Course(await before(runtime, known)), Mine(known.id)
    runner.begin(course.now)
    while not mine.over:
        held = runtime.holder(known.session)
        page = await runtime.read(known.session, after=course.now.seq)
        for event in page:
            mine.see(event)
            runner.show(event, course)
            if mine.over:
                break
        if page:
            continue
        if held:
            await asyncio.sleep(BEAT)
            continue
        try:
            return await runner.turn(course.now, Continue())
        except (SessionBusy, Conflict):
            # Somebody was faster; then they are watched.
            await asyncio.sleep(BEAT)
    return runner.code(course)


async def before(runtime: Runtime, known: Message) -> Summary:
    """The session as it was when the message came. What made it for the message belongs to that."""
    state = Summary(id=known.session)
    for event in await runtime.read(known.session, limit=known.seq - 1) if known.seq > 2 else ():
        SUMMARY.step(state, event)
    return state
