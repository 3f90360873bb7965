"""The chat where there is no full terminal: lines in, lines out."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress

from sylph.interfaces.cli.conversation import Chat
from sylph.interfaces.cli.follow import beside
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.narrate import Act, Ended
from sylph.interfaces.render import Line, line

END = None


class Lines:
    """Reads stdin line by line. From a pipe the next line is taken when the turn is done; a person may break in."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.person = sys.stdin.isatty() and sys.stderr.isatty()
        self._prompt = "> "
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()

    def perform(self, act: Act) -> None:
        self._screen.perform(act)
        if isinstance(act, Ended):
            self._screen.note([line(act.sums, "dim")])
            self._invite()

    def note(self, lines: list[Line]) -> None:
        if lines:
            self._screen.note(lines, always=True)

    def ask(self, prompt: str, lines: list[Line]) -> None:
        *above, last = prompt.split("\n")
        self._screen.note([*lines, *(line(f"  {row}", "bold") for row in above)], always=True)
        self._screen.ask(f"  {last}: ")

    def leave(self) -> None:
        self._typed.put_nowait(END)

    async def lines(self, chat: Chat) -> AsyncGenerator[str, None]:
        self._prompt = chat.prompt
        with suppress(asyncio.CancelledError):
            async with beside(self._screen.spin()), beside(self._read()):
                while (text := await self._next(chat)) is not None:
                    yield text
                    if not self.person:
                        await chat.rest()

    async def _next(self, chat: Chat) -> str | None:
        if not chat.running:
            self._invite()
        text = await self._typed.get()
        self._screen.heard()
        return text

    def _invite(self) -> None:
        if self.person:
            self._screen.ask(self._prompt)

    async def _read(self) -> None:
        """Everything on stdin as lines. Never in a thread: one that waits for input could not be ended."""
        rest = b""
        while piece := await _piece():
            *whole, rest = (rest + piece).split(b"\n")
            for raw in whole:
                self._typed.put_nowait(raw.decode(errors="replace"))
        if rest:
            self._typed.put_nowait(rest.decode(errors="replace"))
        self._typed.put_nowait(END)


async def _piece() -> bytes:
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
