"""Two ways to show a turn on the command line: for a program, and for a person."""

from typing import TextIO

from sylph.core.events import Event, encode_event
from sylph.core.facts.tool_call import Asked, ToolCalled
from sylph.engine.folds.session_state import SessionState
from sylph.engine.redact.event_redactor import EventRedactor
from sylph.engine.redact.redactor import NoRedaction
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.text.turn_presenter import TASK_HINTS, TurnConcluded, TurnPresenter


class JsonTurnView:
    """One event per line: the pinned contract of `--json`."""

    def __init__(self, out: TextIO, redactor: NoRedaction | None = None) -> None:
        self._out, self._trace = out, EventRedactor(redactor or NoRedaction())

    def begin(self, summary: SessionState) -> None:
        """Programs are told what happens, not what was."""

    def show_event(self, event: Event) -> None:
        for each in self._trace.redact_event(event):
            self._out.write(encode_event(each).decode() + "\n")
        self._out.flush()

    def find_call(self, asked: Asked) -> ToolCalled | None:  # noqa: ARG002 - as for a person
        return None


class ScreenTurnView:
    """Turns told on the terminal, each with what it cost."""

    def __init__(self, screen: TerminalScreen, redactor: NoRedaction | None = None) -> None:
        self._screen = screen
        self._narrator = TurnPresenter(TASK_HINTS, redactor)
        self.sums = ""

    def begin(self, summary: SessionState) -> None:
        self._narrator.start_from(summary)

    def show_event(self, event: Event) -> None:
        for act in self._narrator.present_event(event):
            self._screen.display(act)
            if isinstance(act, TurnConcluded):
                self.sums = act.sums

    def find_call(self, asked: Asked) -> ToolCalled | None:
        """The call that a question is about."""
        return self._narrator.calls.get(asked.call)
