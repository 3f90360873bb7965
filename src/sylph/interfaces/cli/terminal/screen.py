"""The terminal of a run: answers on stdout, everything else on stderr, and a spinner while nothing comes."""

import asyncio
import shutil
import time
from collections.abc import Iterable
from typing import TextIO

from sylph.interfaces.cli.kit.colours import paint_line, paint_lines
from sylph.interfaces.cli.terminal.wrap import StreamedText, WordWrapper, fitting_length, wrap_line
from sylph.interfaces.text.render import StyledLine, styled_line
from sylph.interfaces.text.sanitize import sanitize_text
from sylph.interfaces.text.turn_presenter import (
    AnswerChunk,
    AnswerText,
    BellRang,
    BusyChanged,
    CallBegan,
    CallEnded,
    ChunksLost,
    DisplayEvent,
    NoticeShown,
    StreamBroken,
    TurnConcluded,
    turn_end_lines,
)

SPINNER_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_DELAY = 1.0
SPINNER_INTERVAL = 0.1
# Where nobody says how wide it is: lines are not broken there.
UNLIMITED_COLUMNS = 100_000


class TerminalScreen:
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
        self._stream, self._words = StreamedText(), WordWrapper()
        self._busy = BusyChanged("")
        self._since = time.monotonic()

    def display(self, act: DisplayEvent) -> None:  # noqa: C901 - one flat table
        match act:
            case BusyChanged():
                self._busy = act
                if act.ms:
                    self._since = time.monotonic()
                return
            case AnswerChunk(text=text):
                self._show_chunk(text)
            case AnswerText(text=text, final=final):
                self._show_answer(text, final=final)
            case ChunksLost():
                self._stream.mark_lost()
            case StreamBroken():
                self.finish_output()
            case CallBegan(title=title):
                self._show_call(title)
            case CallEnded():
                self._finish_call(act)
            case NoticeShown(lines=lines, always=always):
                self.print_lines(lines, always=always)
            case BellRang():
                self._err.write("\a" if self._spins else "")
                self._err.flush()
            case TurnConcluded():
                self._show_end(act)
        self._since = time.monotonic()

    def print_lines(self, lines: Iterable[StyledLine], *, always: bool = False) -> None:
        """Whole lines on stderr, broken between words. In a quiet run only those that must be seen (`always`)."""
        if self._quiet and not always:
            return
        self._start_fresh_line()
        rows = [row for each in lines for row in wrap_line(each, _stream_columns(self._err))]
        self._err.write(paint_lines(rows, colour=self._colour))
        self._err.flush()

    def show_prompt(self, prompt: str) -> None:
        """A prompt that waits at the end of its line; the spinner stays away until the answer is there."""
        self._busy = BusyChanged("")
        self._start_fresh_line()
        self._asked = True
        self._err.write(paint_line(styled_line(prompt, "bold"), colour=self._colour))
        self._err.flush()

    def end_prompt(self, word: str = "") -> None:
        """The answer to the prompt: the word where a key gave it; a line was ended by whoever typed it."""
        self._asked = False
        if word:
            self._err.write(f"{word}\n")
            self._err.flush()

    def finish_output(self) -> None:
        """Leaves everything at the start of a fresh line, whatever was going on."""
        self._busy = BusyChanged("")
        self._write_answer(self._words.flush(_stream_columns(self._out)))
        self._stream.reset()
        self._start_fresh_line()

    async def spin(self) -> None:
        """Draws the spinner, for as long as it is not cancelled."""
        beat = 0
        while self._spins:
            await asyncio.sleep(SPINNER_INTERVAL)
            beat += 1
            waited = time.monotonic() - self._since
            if waited >= SPINNER_DELAY and (self._busy.label or self._open) and not self._words.column:
                label = f"{self._busy.label}  " if self._busy.label else ""
                self._draw_spinner(f"{SPINNER_FRAMES[beat % len(SPINNER_FRAMES)]} {label}{self._wait_text(waited)}")

    def _wait_text(self, waited: float) -> str:
        left = self._busy.ms / 1000 - waited
        return f"{left:.0f} s left" if left > 0 else f"{waited:.0f} s"

    def _draw_spinner(self, text: str) -> None:
        begun = f"{self._open}  " if self._open else ""
        # A line that wraps could not be taken back.
        shown = sanitize_text(f"{begun}{text}")
        shown = shown[: fitting_length(shown, _stream_columns(self._err) - 1)]
        self._drawn = True
        self._err.write(f"\r\x1b[K{paint_line(styled_line(shown, 'dim'), colour=self._colour)}")
        self._err.flush()

    def _erase_spinner(self) -> None:
        if self._drawn:
            self._drawn = False
            self._err.write(f"\r\x1b[K{self._open}")
            self._err.flush()

    def _start_fresh_line(self) -> None:
        """Goes to the start of a fresh line."""
        self._close_open_line()
        self._write_answer(self._words.newline())

    def _close_open_line(self) -> None:
        self._erase_spinner()
        if self._open or self._asked:
            self._err.write("\n")
            self._err.flush()
            self._open, self._asked = "", False

    def _write_answer(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()

    def _show_chunk(self, text: str) -> None:
        if self._live:
            self._busy = BusyChanged("writing")
            self._write_words(self._stream.add(text))

    def _write_words(self, text: str) -> None:
        if written := self._words.add(text, _stream_columns(self._out)):
            self._close_open_line()
            self._write_answer(written)

    def _show_answer(self, text: str, *, final: bool) -> None:
        self._busy = BusyChanged("")
        if self._live:
            # What did not come in pieces, or was dropped on the way, is made good here.
            self._write_words(self._stream.finish(text))
            self._write_answer(self._words.flush(_stream_columns(self._out)))
            self._start_fresh_line()
        elif final and text.strip():
            self._start_fresh_line()
            self._write_answer(sanitize_text(text).strip("\n") + "\n")
        elif text.strip():
            self.print_lines(styled_line(row, "dim") for row in sanitize_text(text).strip("\n").splitlines())

    def _show_call(self, title: str) -> None:
        if self._quiet or self._open:
            # Of calls that run side by side only one has a line that waits; the others get theirs when they are done.
            return
        self._busy = BusyChanged("")
        self._start_fresh_line()
        self._open = self._fit_title(f"▸ {title}")
        self._err.write(self._open)
        self._err.flush()

    def _fit_title(self, title: str) -> str:
        shown = sanitize_text(title)
        return shown[: fitting_length(shown, _stream_columns(self._err) - 16)] if self._spins else shown[:200]

    def _finish_call(self, act: CallEnded) -> None:
        self._busy = BusyChanged("")
        if self._quiet:
            return
        mark = paint_line(act.mark, colour=self._colour)
        if self._open and sanitize_text(f"▸ {act.title}").startswith(self._open):
            self._erase_spinner()
            self._open = ""
            self._err.write(f"  {mark}\n")
        elif self._open and self._spins:
            # Another one still waits on the last line: it moves down.
            self._drawn = False
            self._err.write(f"\r\x1b[K▸ {sanitize_text(act.title)}  {mark}\n{self._open}")
        else:
            self._start_fresh_line()
            self._err.write(f"▸ {sanitize_text(act.title)}  {mark}\n")
        if act.more:
            self.print_lines(act.more)
        self._err.flush()

    def _show_end(self, act: TurnConcluded) -> None:
        self.finish_output()
        self.print_lines(turn_end_lines(act), always=True)


def _stream_columns(stream: TextIO) -> int:
    return shutil.get_terminal_size().columns if stream.isatty() else UNLIMITED_COLUMNS
