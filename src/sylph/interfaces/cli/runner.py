"""One turn on one terminal: sent, shown, asked about, stopped, summed up."""

import asyncio
import signal
import sys
from contextlib import suppress

from sylph.app import App
from sylph.core.commands import Answer, Command, Interrupt
from sylph.core.errors import UserError
from sylph.core.facts import Asked, TurnEnded
from sylph.core.text import count
from sylph.engine.summary import Summary
from sylph.interfaces.cli import asking, codes
from sylph.interfaces.cli.follow import Questions, Turn, beside, follow
from sylph.interfaces.cli.interrupts import interrupts
from sylph.interfaces.cli.keyboard import Keyboard
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.cli.views import JsonView, ScreenView
from sylph.interfaces.render import Line, Span, line


class Runner:
    def __init__(self, app: App, *, quiet: bool = False, as_json: bool = False) -> None:
        self._runtime = app.runtime
        terminal = app.config.terminal
        self._screen = Screen(
            sys.stdout, sys.stderr, colour=terminal.colour, quiet=quiet or as_json, dumb=terminal.dumb
        )
        self._view = JsonView(sys.stdout) if as_json else ScreenView(self._screen)
        self._keyboard = Keyboard.find()
        self._signal = 0

    async def remind(self) -> None:
        """Names the turns that were interrupted, with the commands that finish them."""
        if found := await self._runtime.interrupted():
            self._screen.note([reminder(found)])

    async def turn(self, summary: Summary, command: Command, *, resume: bool = False) -> int:
        """Sends `command` and follows the turn that it begins or goes on with; returns the exit code."""
        stop = asyncio.Event()
        with interrupts(lambda number: self._caught(number, stop)):
            input = await self._runtime.send(summary.id, command)
            turn = Turn(id=summary.open_turn, input=next(iter(summary.queue), "")) if resume else Turn(input=input)
            async with beside(self._screen.spin()), beside(self._stop(summary.id, stop)):
                ended = await self._follow(summary, turn)
        self._sum_up(summary, turn)
        if self._signal and ended.outcome == "cancelled":
            return 128 + self._signal
        return codes.REFUSED.number if turn.refused and ended.outcome == "finished" else codes.of_turn(ended)

    async def _follow(self, summary: Summary, turn: Turn) -> TurnEnded:
        questions = Questions(self._runtime, summary.id, self._ask)
        events = self._runtime.watch(summary.id, after=summary.seq)
        try:
            return await follow(events, turn, self._view.show, questions.see)
        except OSError:
            await self._interrupt(summary.id, "the output cannot be written")
            await self._runtime.settled(summary.id)
            raise
        finally:
            questions.drop()

    async def _ask(self, asked: Asked) -> Answer:
        if self._keyboard is None:
            return asking.refusal(asked)
        called = self._view.called(asked) if isinstance(self._view, ScreenView) else None
        return await asking.ask(asked, called, self._keyboard, self._screen)

    def _caught(self, number: int, stop: asyncio.Event) -> None:
        self._signal = number
        stop.set()

    async def _stop(self, session: str, stop: asyncio.Event) -> None:
        await stop.wait()
        await self._interrupt(session, signal.Signals(self._signal).name)

    async def _interrupt(self, session: str, reason: str) -> None:
        # The turn may have ended by itself just now.
        with suppress(UserError):
            await self._runtime.send(session, Interrupt(reason=reason))

    def _sum_up(self, summary: Summary, turn: Turn) -> None:
        if turn.refused:
            asked = count(turn.refused, "question")
            said = f"{asked} answered with no: {asking.NOBODY}. `--mode` sets what needs no question."
            self._screen.note([line(said, "warn")])
        sums = self._view.sums if isinstance(self._view, ScreenView) else ""
        self._screen.note([line(f"{summary.id} · {sums}", "dim")])


def reminder(found: list[Summary]) -> Line:
    """One line that names interrupted turns and how to finish them."""
    commands = " · ".join(f"sylph resume {summary.id}" for summary in found[:3])
    more = f" and {len(found) - 3} more (sylph status)" if len(found) > 3 else ""
    return (Span(f"{count(len(found), 'interrupted turn')}: ", "warn"), Span(commands + more))
