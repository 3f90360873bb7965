"""The terminal of a run: answers on stdout, everything else on stderr, and a spinner while nothing comes."""

import asyncio
import shutil
import time
from collections.abc import Iterable
from typing import TextIO

from sylph.interfaces.cli.paint import paint, painted
from sylph.interfaces.narrate import Act, Began, Busy, Done, Ended, Piece, Said, Shown, end_lines
from sylph.interfaces.render import Line, clean, line

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PATIENCE = 1.0
BEAT = 0.1


class Screen:
    """Shows acts. Where stdout is no terminal it gets the answer only, whole: what is read by a program is not chat."""

    def __init__(
        self, out: TextIO, err: TextIO, *, colour: bool = True, quiet: bool = False, dumb: bool = False
    ) -> None:
        self._out, self._err = out, err
        self._live = out.isatty() and not quiet
        self._spins = err.isatty() and not quiet and not dumb
        self._colour = colour and err.isatty()
        self._quiet = quiet
        self._open = ""
        self._inline = False
        self._streamed = ""
        self._busy = Busy("")
        self._since = time.monotonic()

    def perform(self, act: Act) -> None:
        match act:
            case Busy():
                self._busy = act
                if act.ms:
                    self._since = time.monotonic()
                return
            case Piece(text=text):
                self._piece(text)
            case Said(text=text, final=final):
                self._said(text, final=final)
            case Began(title=title):
                self._begin(title)
            case Done():
                self._done(act)
            case Shown(lines=lines):
                self.note(lines)
            case Ended():
                self._end(act)
        self._since = time.monotonic()

    def note(self, lines: Iterable[Line], *, always: bool = False) -> None:
        """Whole lines on stderr. In a quiet run only those that must be seen (`always`)."""
        if self._quiet and not always:
            return
        self._settle()
        self._err.write(painted(lines, colour=self._colour))
        self._err.flush()

    def ask(self, prompt: str) -> None:
        """A prompt that waits at the end of its line; the spinner stays away until the answer is there."""
        self._busy = Busy("")
        self._settle()
        self._err.write(paint(line(prompt, "bold"), colour=self._colour))
        self._err.flush()

    async def spin(self) -> None:
        """Draws the spinner, for as long as it is not cancelled."""
        beat = 0
        while self._spins:
            await asyncio.sleep(BEAT)
            beat += 1
            waited = time.monotonic() - self._since
            if waited >= PATIENCE and self._busy.label and not self._inline:
                self._draw(f"{FRAMES[beat % len(FRAMES)]} {self._busy.label}  {self._clock(waited)}")

    def _clock(self, waited: float) -> str:
        left = self._busy.ms / 1000 - waited
        return f"{left:.0f} s left" if left > 0 else f"{waited:.0f} s"

    def _draw(self, text: str) -> None:
        room = shutil.get_terminal_size().columns - 1
        begun = f"{self._open}  " if self._open else ""
        # A line that wraps could not be taken back.
        shown = f"{begun}{text}"[:room]
        self._err.write(f"\r\x1b[K{paint(line(shown, 'dim'), colour=self._colour)}")
        self._err.flush()

    def _erase(self) -> None:
        if self._spins and not self._inline:
            self._err.write(f"\r\x1b[K{self._open}")
            self._err.flush()

    def _settle(self) -> None:
        """Goes to the start of a fresh line."""
        self._erase()
        if self._open:
            self._err.write("\n")
            self._open = ""
        if self._inline:
            self._out.write("\n")
            self._out.flush()
            self._inline = False

    def _piece(self, text: str) -> None:
        if not self._live:
            return
        shown = clean(text) if self._streamed.strip("\n") else clean(text).lstrip("\n")
        self._streamed += text
        if not shown:
            return
        if not self._inline:
            self._settle()
        self._out.write(shown)
        self._out.flush()
        self._inline = not shown.endswith("\n")

    def _said(self, text: str, *, final: bool) -> None:
        self._busy = Busy("")
        streamed, self._streamed = self._streamed, ""
        if self._live:
            # What did not come in pieces, or was dropped on the way, is made good here.
            self._piece(text.removeprefix(streamed))
            self._streamed = ""
            self._settle()
        elif final and text.strip():
            self._settle()
            self._out.write(clean(text).strip("\n") + "\n")
            self._out.flush()
        elif text.strip():
            self.note(line(row, "dim") for row in clean(text).strip("\n").splitlines())

    def _begin(self, title: str) -> None:
        if self._quiet or self._open:
            # Of calls that run side by side only one has a line that waits; the others get theirs when they are done.
            return
        self._settle()
        room = shutil.get_terminal_size().columns - 16 if self._spins else 200
        self._open = clean(f"▸ {title}")[:room]
        self._err.write(self._open)
        self._err.flush()

    def _done(self, act: Done) -> None:
        self._busy = Busy("")
        if self._quiet:
            return
        mark = paint(act.mark, colour=self._colour)
        if self._open and clean(f"▸ {act.title}").startswith(self._open):
            self._erase()
            self._open = ""
            self._err.write(f"  {mark}\n")
        elif self._open and self._spins:
            # Another one still waits on the last line: it moves down.
            self._err.write(f"\r\x1b[K▸ {clean(act.title)}  {mark}\n{self._open}")
        else:
            self._settle()
            self._err.write(f"▸ {clean(act.title)}  {mark}\n")
        if act.more:
            self.note(act.more)

    def _end(self, act: Ended) -> None:
        self._busy = Busy("")
        self.note(end_lines(act), always=True)
        self._settle()
