"""The chat where there is no full terminal: lines in, lines out."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress

from sylph.interfaces.cli.chat.conversation import TerminalChat
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.cli.turn.follower import run_in_background
from sylph.interfaces.text.render import StyledLine, styled_line
from sylph.interfaces.text.turn_presenter import DisplayEvent, TurnConcluded

END_OF_INPUT = None


class LineFrontend:
    """Reads stdin line by line. From a pipe the next line is taken when the turn is done; a person may break in."""

    def __init__(self, screen: TerminalScreen) -> None:
        self._screen = screen
        self.person = sys.stdin.isatty() and sys.stderr.isatty()
        self._prompt = "> "
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()

    def display(self, act: DisplayEvent) -> None:
        self._screen.display(act)
        if isinstance(act, TurnConcluded):
            self._screen.print_lines([styled_line(act.sums, "dim")])
            self._show_prompt()

    def print_lines(self, lines: list[StyledLine]) -> None:
        if lines:
            self._screen.print_lines(lines, always=True)

    def show_question(self, prompt: str, lines: list[StyledLine]) -> None:
        *above, last = prompt.split("\n")
        self._screen.print_lines([*lines, *(styled_line(f"  {row}", "bold") for row in above)], always=True)
        self._screen.show_prompt(f"  {last}: ")

    def close(self) -> None:
        self._typed.put_nowait(END_OF_INPUT)

    async def read_lines(self, chat: TerminalChat) -> AsyncGenerator[str, None]:
        self._prompt = chat.prompt
        with suppress(asyncio.CancelledError):
            async with run_in_background(self._screen.spin()), run_in_background(self._read_stdin()):
                while (text := await self._next_line(chat)) is not None:
                    yield text
                    if not self.person:
                        await chat.wait_idle()

    async def _next_line(self, chat: TerminalChat) -> str | None:
        if not chat.is_running:
            self._show_prompt()
        text = await self._typed.get()
        self._screen.end_prompt()
        return text

    def _show_prompt(self) -> None:
        if self.person:
            self._screen.show_prompt(self._prompt)

    async def _read_stdin(self) -> None:
        """Everything on stdin as lines. Never in a thread: one that waits for input could not be ended."""
        rest = b""
        while piece := await _read_chunk():
            *whole, rest = (rest + piece).split(b"\n")
            for raw in whole:
                self._typed.put_nowait(raw.decode(errors="replace"))
        if rest:
            self._typed.put_nowait(rest.decode(errors="replace"))
        self._typed.put_nowait(END_OF_INPUT)


async def _read_chunk() -> bytes:
    """The next bytes of stdin; none at its end."""
    if stat.S_ISREG(os.fstat(0).st_mode):
        return os.read(0, 65_536)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(0, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(0)
    return os.read(0, 65_536)
