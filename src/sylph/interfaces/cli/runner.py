"""Turns on one terminal: sent, shown, asked about, stopped, summed up."""

import asyncio
import signal
import sys
from contextlib import suppress

from sylph.app import App
from sylph.core.commands import Answer, Command, Interrupt
from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.core.facts import Asked, TurnEnded
from sylph.core.text import count
from sylph.engine.summary import Summary
from sylph.interfaces.allowance import used_up
from sylph.interfaces.cli import asking, codes
from sylph.interfaces.cli.follow import Course, Questions, beside, follow
from sylph.interfaces.cli.interrupts import interrupts
from sylph.interfaces.cli.keyboard import Keyboard
from sylph.interfaces.cli.ongoing import ongoing
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.cli.views import JsonView, ScreenView
from sylph.interfaces.confinement import switched_off
from sylph.interfaces.render import Line, line


class Runner:
    def __init__(self, app: App, *, quiet: bool = False, as_json: bool = False) -> None:
        self._runtime, self._delivered, self.unlock = app.runtime, app.delivered, app.unlock
        terminal = app.config.terminal
        self._usual, self._budget = app.config.settings.mode, app.purse.budget
        self._screen = Screen(
            sys.stdout, sys.stderr, colour=terminal.colour, quiet=quiet or as_json, dumb=terminal.dumb
        )
        self._view = JsonView(sys.stdout, app.runtime.veil) if as_json else ScreenView(self._screen, app.runtime.veil)
        self._keyboard = Keyboard.find()
        self._answering = asyncio.Lock()
        self._signal = 0

    def note(self, *lines: Line) -> None:
        self._screen.note(lines)

    def begin(self, summary: Summary) -> None:
        self._view.begin(summary)

    def show(self, event: Event, course: Course) -> None:
        """Something that happens, or has happened, in another process."""
        course.see(event)
        self._view.show(event)
        self._sum_up(event, course)

    async def turn(self, summary: Summary, command: Command | None) -> int:
        """Sends `command` and follows the session until nothing waits in it any more; returns the exit code."""
        self.unlock(summary.model)
        stop = asyncio.Event()
        course = Course(summary)
        self._view.begin(summary)
        self._warn(summary)
        try:
            with interrupts(lambda number: self._caught(number, stop)):
                if command:
                    await self._runtime.send(summary.id, command)
                async with beside(self._screen.spin()), beside(self._stop(summary.id, stop)):
                    await self._follow(course)
        finally:
            self._screen.rest()
        if left := await self._delivered(summary.id):
            self.note(line(left, "warn"))
        self.note(*ongoing(self._runtime, summary.id))
        if self._signal and course.ended[-1].outcome == "cancelled":
            return 128 + self._signal
        return self.code(course)

    def code(self, course: Course) -> int:
        """The exit code that tells how it went."""
        refused = codes.REFUSED.number if course.refused or course.unanswered else 0
        return next((code for ended in course.ended if (code := codes.of_turn(ended))), refused)

    def _warn(self, summary: Summary) -> None:
        if said := switched_off(summary):
            self.note(line(f"{said}: commands run with all your rights", "warn"))

    async def _follow(self, course: Course) -> None:
        questions = Questions(self._runtime, course.now.id, self._ask)
        questions.take_up(course.now)
        events = self._runtime.watch(course.now.id, after=course.now.seq)
        try:
            await follow(
                events,
                course,
                lambda: bool(self._signal) or course.settled,
                self._view.show,
                questions.see,
                lambda event: self._sum_up(event, course),
            )
        except OSError:
            await self._interrupt(course.now.id, "the output cannot be written")
            await self._runtime.settled(course.now.id)
            raise
        finally:
            questions.drop()

    async def _ask(self, asked: Asked) -> Answer:
        if self._keyboard is None:
            return asking.refusal(asked)
        # Several may be open at once; a person answers one after the other.
        async with self._answering:
            return await asking.ask(asked, self._view.called(asked), self._keyboard, self._screen)

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

    def _sum_up(self, event: Event, course: Course) -> None:
        """The footer of a turn."""
        if not isinstance(event.body, TurnEnded):
            return
        for said in unheard(course):
            self._screen.note([line(said, "warn")])
        sums = self._view.sums if isinstance(self._view, ScreenView) else ""
        mode = f"mode {course.now.mode}" if course.now.mode != self._usual else ""
        capped = used_up(course.now, self._budget)
        told = [course.now.id, sums, f"session {capped}" if " of " in capped else "", mode, switched_off(course.now)]
        self._screen.note([line(" · ".join(filter(None, told)), "dim")])


def unheard(course: Course) -> list[str]:
    """What nobody was there to answer, and how to do without."""
    said: list[str] = []
    if course.refused:
        asked = count(course.refused, "approval")
        # In trust a rule or a protected place asked: no mode would have spared it.
        without = "" if course.now.mode == "trust" else " `--mode` sets what needs no question."
        said.append(f"{asked} answered with no: {asking.NOBODY}.{without}")
    if course.unanswered:
        asked = count(course.unanswered, "question")
        said.append(f"{asked} of the model not answered: {asking.NOBODY}. Say more in the task, or run it in one.")
    return said
