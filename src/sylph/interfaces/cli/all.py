"""`sylph resume --all`: everything that was left open goes on, a few at a time."""

import asyncio
import sys
from contextlib import AsyncExitStack

from sylph.app import App
from sylph.core.commands import Answer, Continue
from sylph.core.facts import Asked, TurnEnded
from sylph.core.text import count
from sylph.engine.resumed import Resumed
from sylph.engine.runtime import Runtime
from sylph.engine.summary import Summary
from sylph.interfaces.cli import asking, codes
from sylph.interfaces.cli.door import put, put_json
from sylph.interfaces.cli.follow import Questions, beside
from sylph.interfaces.cli.keyboard import Keyboard
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.pending import task_of
from sylph.interfaces.render import flat, line


class Person:
    """Whoever sits at the terminal, asked one thing at a time; where nobody does, that is the answer."""

    def __init__(self, app: App) -> None:
        terminal = app.config.terminal
        self._screen = Screen(sys.stdout, sys.stderr, colour=terminal.colour, dumb=terminal.dumb)
        self._keyboard = Keyboard.find()
        self._one = asyncio.Lock()

    async def ask(self, asked: Asked, summary: Summary) -> Answer:
        async with self._one:
            if self._keyboard is None:
                return asking.refusal(asked)
            self._screen.note([line(f"{summary.id}  {flat(summary.title)}", "bold")], always=True)
            return await asking.ask(asked, None, self._keyboard, self._screen)


async def resume_all(app: App, *, quiet: bool, as_json: bool) -> int:
    app.unlock()
    left = await app.runtime.resumable()
    tasks = {one.id: flat(await task_of(app.runtime, one)) for one in left}
    person, done = Person(app), list[Resumed]()
    async with AsyncExitStack() as stack:
        for one in left:
            await stack.enter_async_context(beside(_answer(app.runtime, one, person)))
        async for resumed in app.runtime.resume_all():
            done.append(resumed)
            if not as_json and not quiet:
                put(f"{resumed.session}  {told(resumed)}  {tasks.get(resumed.session, '')}")
                sys.stdout.flush()
    if as_json:
        put_json({"resumed": done})
    elif not done:
        put("Nothing was left open.")
    return next((code for one in done if (code := code_of(one))), 0)


async def _answer(runtime: Runtime, summary: Summary, person: Person) -> None:
    questions = Questions(runtime, summary.id, lambda asked: person.ask(asked, summary))
    try:
        async for event in runtime.watch(summary.id, after=summary.seq):
            questions.see(event)
    finally:
        questions.drop()


def told(resumed: Resumed) -> str:
    """What came of it, in a few words."""
    late = f", {count(resumed.undelivered, 'notification')} not delivered yet" if resumed.undelivered else ""
    why = f": {flat(resumed.trouble.message, 100)}" if resumed.trouble else ""
    match resumed.state:
        case "ended":
            return f"{resumed.outcome}{why}{late}"
        case "delivered":
            return "delivered" if not late else late.removeprefix(", ")
        case "elsewhere":
            return "another process goes on with it"
        case "open":
            return f"still open{why}"


def code_of(resumed: Resumed) -> int:
    if resumed.state == "open" or (resumed.state == "delivered" and resumed.undelivered):
        return codes.of_trouble(resumed.trouble) if resumed.trouble else codes.FAILED.number
    if resumed.outcome is None:
        return 0
    return codes.of_turn(TurnEnded(outcome=resumed.outcome, trouble=resumed.trouble))


async def deliver(app: App, summary: Summary, *, as_json: bool) -> int:
    """Sends what one session holds for the person; no turn of it is open."""
    await app.runtime.send(summary.id, Continue())
    await app.runtime.settled(summary.id)
    await app.runtime.tried()
    waiting = len((await app.runtime.find(summary.id)).outbox)
    lost = app.runtime.given_up(summary.id, after=summary.seq)
    sent = len(summary.outbox) - waiting - len(lost)
    if as_json:
        put_json({"session": summary.id, "delivered": sent, "waiting": waiting, "given_up": lost})
    else:
        put(f"{summary.id}: {count(sent, 'notification')} delivered, {waiting} not yet, {len(lost)} given up.")
        sys.stderr.writelines(f"sylph: {flat(one.trouble.message, 200)}\n" for one in lost)
    return codes.FAILED.number if waiting or lost else 0
