"""Two ways to show a turn on the command line: for a program, and for a person."""

from typing import TextIO

from sylph.core.events import Event, line_of
from sylph.core.facts import Asked, ToolCalled
from sylph.engine.redact.trace import Trace
from sylph.engine.redact.veil import Veil
from sylph.engine.summary import Summary
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.narrate import TASK, Ended, Narrator


class JsonView:
    """One event per line: the pinned contract of `--json`."""

    def __init__(self, out: TextIO, veil: Veil | None = None) -> None:
        self._out, self._trace = out, Trace(veil or Veil())

    def begin(self, summary: Summary) -> None:
        """Programs are told what happens, not what was."""

    def show(self, event: Event) -> None:
        for each in self._trace.see(event):
            self._out.write(line_of(each).decode() + "\n")
        self._out.flush()

    def called(self, asked: Asked) -> ToolCalled | None:  # noqa: ARG002 - as for a person
        return None


class ScreenView:
    """Turns told on the terminal, each with what it cost."""

    def __init__(self, screen: Screen, veil: Veil | None = None) -> None:
        self._screen = screen
        self._narrator = Narrator(TASK, veil)
        self.sums = ""

    def begin(self, summary: Summary) -> None:
        self._narrator.begin(summary)

    def show(self, event: Event) -> None:
        for act in self._narrator.see(event):
            self._screen.perform(act)
            if isinstance(act, Ended):
                self.sums = act.sums

    def called(self, asked: Asked) -> ToolCalled | None:
        """The call that a question is about."""
        return self._narrator.calls.get(asked.call)
