"""The terminal of a run: answers on stdout, everything else on stderr, and a spinner while nothing comes."""

import asyncio
import shutil
import time
from collections.abc import Iterable
from typing import TextIO

from sylph.interfaces.clean import clean
from sylph.interfaces.cli.paint import paint, painted
from sylph.interfaces.cli.wrap import Stream, Words, fit, folded
from sylph.interfaces.narrate import Act, Began, Broke, Busy, Done, Ended, Lost, Piece, Rang, Said, Shown, end_lines
from sylph.interfaces.render import Line, line

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PATIENCE = 1.0
BEAT = 0.1
# Where nobody says how wide it is: lines are not broken there.
ENDLESS = 100_000


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
        # What stands at the end of stderr without a newline: a call that runs, a spinner, a question.
        self._open = ""
        self._drawn = self._asked = False
        self._stream, self._words = Stream(), Words()
        self._busy = Busy("")
        self._since = time.monotonic()

    def perform(self, act: Act) -> None:  # noqa: C901 - one flat table
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
            case Lost():
                self._stream.lose()
            case Broke():
                self.rest()
            case Began(title=title):
                self._begin(title)
            case Done():
                self._done(act)
            case Shown(lines=lines, always=always):
                self.note(lines, always=always)
            case Rang():
                self._err.write("\a" if self._spins else "")
                self._err.flush()
            case Ended():
                self._end(act)
        self._since = time.monotonic()

    def note(self, lines: Iterable[Line], *, always: bool = False) -> None:
        """Whole lines on stderr, broken between words. In a quiet run only those that must be seen (`always`)."""
        if self._quiet and not always:
            return
        self._settle()
        rows = [row for each in lines for row in folded(each, _columns(self._err))]
        self._err.write(painted(rows, colour=self._colour))
        self._err.flush()

    def ask(self, prompt: str) -> None:
        """A prompt that waits at the end of its line; the spinner stays away until the answer is there."""
        self._busy = Busy("")
        self._settle()
        self._asked = True
        self._err.write(paint(line(prompt, "bold"), colour=self._colour))
        self._err.flush()

    def heard(self, word: str = "") -> None:
        """The answer to the prompt: the word where a key gave it; a line was ended by whoever typed it."""
        self._asked = False
        if word:
            self._err.write(f"{word}\n")
            self._err.flush()

    def rest(self) -> None:
        """Leaves everything at the start of a fresh line, whatever was going on."""
        self._busy = Busy("")
        self._write(self._words.cut(_columns(self._out)))
        self._stream.forget()
        self._settle()

    async def spin(self) -> None:
        """Draws the spinner, for as long as it is not cancelled."""
        beat = 0
        while self._spins:
            await asyncio.sleep(BEAT)
            beat += 1
            waited = time.monotonic() - self._since
            if waited >= PATIENCE and (self._busy.label or self._open) and not self._words.column:
                label = f"{self._busy.label}  " if self._busy.label else ""
                self._draw(f"{FRAMES[beat % len(FRAMES)]} {label}{self._clock(waited)}")

    def _clock(self, waited: float) -> str:
        left = self._busy.ms / 1000 - waited
        return f"{left:.0f} s left" if left > 0 else f"{waited:.0f} s"

    def _draw(self, text: str) -> None:
        begun = f"{self._open}  " if self._open else ""
        # A line that wraps could not be taken back.
        shown = clean(f"{begun}{text}")
        shown = shown[: fit(shown, _columns(self._err) - 1)]
        self._drawn = True
        self._err.write(f"\r\x1b[K{paint(line(shown, 'dim'), colour=self._colour)}")
        self._err.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._drawn = False
            self._err.write(f"\r\x1b[K{self._open}")
            self._err.flush()

    def _settle(self) -> None:
        """Goes to the start of a fresh line."""
        self._clear()
        self._write(self._words.newline())

    def _clear(self) -> None:
        self._erase()
        if self._open or self._asked:
            self._err.write("\n")
            self._err.flush()
            self._open, self._asked = "", False

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()

    def _piece(self, text: str) -> None:
        if self._live:
            self._busy = Busy("writing")
            self._show(self._stream.add(text))

    def _show(self, text: str) -> None:
        if written := self._words.add(text, _columns(self._out)):
            self._clear()
            self._write(written)

    def _said(self, text: str, *, final: bool) -> None:
        self._busy = Busy("")
        if self._live:
            # What did not come in pieces, or was dropped on the way, is made good here.
            self._show(self._stream.end(text))
            self._write(self._words.cut(_columns(self._out)))
            self._settle()
        elif final and text.strip():
            self._settle()
            self._write(clean(text).strip("\n") + "\n")
        elif text.strip():
            self.note(line(row, "dim") for row in clean(text).strip("\n").splitlines())

    def _begin(self, title: str) -> None:
        if self._quiet or self._open:
            # Of calls that run side by side only one has a line that waits; the others get theirs when they are done.
            return
        self._busy = Busy("")
        self._settle()
        self._open = self._fitted(f"▸ {title}")
        self._err.write(self._open)
        self._err.flush()

    def _fitted(self, title: str) -> str:
        shown = clean(title)
        return shown[: fit(shown, _columns(self._err) - 16)] if self._spins else shown[:200]

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
            self._drawn = False
            self._err.write(f"\r\x1b[K▸ {clean(act.title)}  {mark}\n{self._open}")
        else:
            self._settle()
            self._err.write(f"▸ {clean(act.title)}  {mark}\n")
        if act.more:
            self.note(act.more)
        self._err.flush()

    def _end(self, act: Ended) -> None:
        self.rest()
        self.note(end_lines(act), always=True)


def _columns(stream: TextIO) -> int:
    return shutil.get_terminal_size().columns if stream.isatty() else ENDLESS
