"""Two ways to show a turn on the command line: for a program, and for a person."""

from typing import TextIO

from sylph.core.events import Event, line_of
from sylph.core.facts import Asked, ToolCalled
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.narrate import Ended, Narrator


class JsonView:
    """One event per line: the pinned contract of `--json`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        self._out.write(line_of(event).decode() + "\n")
        self._out.flush()


class ScreenView:
    """A turn told on the terminal. `sums` is what it cost, once it has ended."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._narrator = Narrator()
        self.sums = ""

    def show(self, event: Event) -> None:
        for act in self._narrator.see(event):
            if isinstance(act, Ended):
                self.sums = act.sums
            self._screen.perform(act)

    def called(self, asked: Asked) -> ToolCalled | None:
        """The call that a question is about."""
        return self._narrator.calls.get(asked.call)
