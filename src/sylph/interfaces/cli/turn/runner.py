"""Turns on one terminal: sent, shown, asked about, stopped, summed up."""

import asyncio
import signal
import sys
from contextlib import suppress

from sylph.app import App
from sylph.core.commands import Answer, Command, Interrupt
from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import TurnEnded
from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.terminal.interrupts import catch_first_signal
from sylph.interfaces.cli.terminal.keyboard import Keyboard
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.cli.turn import question_prompt
from sylph.interfaces.cli.turn.follower import OpenQuestions, TurnProgress, follow_turns, run_in_background
from sylph.interfaces.cli.turn.output_view import JsonTurnView, ScreenTurnView
from sylph.interfaces.cli.turn.running_jobs import running_job_lines
from sylph.interfaces.text.budget_text import session_spending
from sylph.interfaces.text.render import StyledLine, styled_line
from sylph.interfaces.text.sandbox_notice import sandbox_off_notice


class TerminalTurnRunner:
    def __init__(self, app: App, *, quiet: bool = False, as_json: bool = False) -> None:
        self._runtime, self._delivered, self.unlock = app.runtime, app.await_deliveries, app.unlock_credentials
        terminal = app.config.terminal
        self._usual, self._budget = app.config.settings.mode, app.budget_ledger.budget
        self._screen = TerminalScreen(
            sys.stdout, sys.stderr, colour=terminal.colour, quiet=quiet or as_json, dumb=terminal.dumb
        )
        self._view = (
            JsonTurnView(sys.stdout, app.runtime.redactor)
            if as_json
            else ScreenTurnView(self._screen, app.runtime.redactor)
        )
        self._keyboard = Keyboard.find()
        self._answering = asyncio.Lock()
        self._signal = 0

    def print_lines(self, *lines: StyledLine) -> None:
        self._screen.print_lines(lines)

    def begin_view(self, summary: SessionState) -> None:
        self._view.begin(summary)

    def show_event(self, event: Event, course: TurnProgress) -> None:
        """Something that happens, or has happened, in another process."""
        course.apply_event(event)
        self._view.show_event(event)
        self._print_summary(event, course)

    async def run_turn(self, summary: SessionState, command: Command | None) -> int:
        """Sends `command` and follows the session until nothing waits in it any more; returns the exit code."""
        self.unlock(summary.model)
        stop = asyncio.Event()
        course = TurnProgress(summary)
        self._view.begin(summary)
        self._warn_unconfined(summary)
        try:
            with catch_first_signal(lambda number: self._on_signal(number, stop)):
                if command:
                    await self._runtime.send(summary.id, command)
                async with (
                    run_in_background(self._screen.spin()),
                    run_in_background(self._stop_on_signal(summary.id, stop)),
                ):
                    await self._follow_turns(course)
        finally:
            self._screen.finish_output()
        if left := await self._delivered(summary.id):
            self.print_lines(styled_line(left, "warn"))
        self.print_lines(*running_job_lines(self._runtime, summary.id))
        if self._signal and course.ended[-1].outcome == "cancelled":
            return 128 + self._signal
        return self.result_code(course)

    def result_code(self, course: TurnProgress) -> int:
        """The exit code that tells how it went."""
        refused = exit_code.REFUSED.number if course.refused or course.unanswered else 0
        return next((code for ended in course.ended if (code := exit_code.for_turn(ended))), refused)

    def _warn_unconfined(self, summary: SessionState) -> None:
        if said := sandbox_off_notice(summary):
            self.print_lines(styled_line(f"{said}: commands run with all your rights", "warn"))

    async def _follow_turns(self, course: TurnProgress) -> None:
        questions = OpenQuestions(self._runtime, course.now.id, self._ask_question)
        questions.ask_pending(course.now)
        events = self._runtime.watch(course.now.id, after=course.now.seq)
        try:
            await follow_turns(
                events,
                course,
                lambda: bool(self._signal) or course.is_settled,
                self._view.show_event,
                questions.handle_event,
                lambda event: self._print_summary(event, course),
            )
        except OSError:
            await self._interrupt_turn(course.now.id, "the output cannot be written")
            await self._runtime.wait_until_idle(course.now.id)
            raise
        finally:
            questions.cancel_all()

    async def _ask_question(self, asked: Asked) -> Answer:
        if self._keyboard is None:
            return question_prompt.unattended_answer(asked)
        # Several may be open at once; a person answers one after the other.
        async with self._answering:
            return await question_prompt.ask_person(asked, self._view.find_call(asked), self._keyboard, self._screen)

    def _on_signal(self, number: int, stop: asyncio.Event) -> None:
        self._signal = number
        stop.set()

    async def _stop_on_signal(self, session: str, stop: asyncio.Event) -> None:
        await stop.wait()
        await self._interrupt_turn(session, signal.Signals(self._signal).name)

    async def _interrupt_turn(self, session: str, reason: str) -> None:
        # The turn may have ended by itself just now.
        with suppress(UserError):
            await self._runtime.send(session, Interrupt(reason=reason))

    def _print_summary(self, event: Event, course: TurnProgress) -> None:
        """The footer of a turn."""
        if not isinstance(event.body, TurnEnded):
            return
        for said in unanswered_notes(course):
            self._screen.print_lines([styled_line(said, "warn")])
        sums = self._view.sums if isinstance(self._view, ScreenTurnView) else ""
        mode = f"mode {course.now.mode}" if course.now.mode != self._usual else ""
        capped = session_spending(course.now, self._budget)
        told = [
            course.now.id,
            sums,
            f"session {capped}" if " of " in capped else "",
            mode,
            sandbox_off_notice(course.now),
        ]
        self._screen.print_lines([styled_line(" · ".join(filter(None, told)), "dim")])


def unanswered_notes(course: TurnProgress) -> list[str]:
    """What nobody was there to answer, and how to do without."""
    said: list[str] = []
    if course.refused:
        asked = count_noun(course.refused, "approval")
        # In trust a rule or a protected place asked: no mode would have spared it.
        without = "" if course.now.mode == "trust" else " `--mode` sets what needs no question."
        said.append(f"{asked} answered with no: {question_prompt.NOBODY_REASON}.{without}")
    if course.unanswered:
        asked = count_noun(course.unanswered, "question")
        said.append(
            f"{asked} of the model not answered: {question_prompt.NOBODY_REASON}. "
            f"Say more in the task, or run it in one."
        )
    return said
