"""A person at a terminal, read without blocking the loop."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager

END_OF_INPUT = "\x04"


class Keyboard:
    """Keys and lines from one terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def find(cls) -> "Keyboard | None":
        """The person's terminal, also while stdin is a pipe; None where nobody can see a question or answer it."""
        if not sys.stderr.isatty():
            return None
        if sys.stdin and sys.stdin.isatty():
            return cls(sys.stdin.fileno())
        try:
            return cls(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY))
        except OSError:
            return None

    async def read_key(self, wanted: Callable[[str], bool], invite: Callable[[], None]) -> str:
        """The first key that is wanted, or END; nothing where the terminal is gone.

        What was typed before `invite` does not count.
        """
        with self._raw_mode():
            termios.tcflush(self._fd, termios.TCIFLUSH)
            invite()
            while (key := await self._read_input()) not in ("", END_OF_INPUT):
                if wanted(key):
                    break
        return key

    async def read_line(self) -> str:
        """One line without its newline; END where the person closed the input."""
        text = await self._read_input()
        return text.rstrip("\n") if text else END_OF_INPUT

    async def _read_input(self) -> str:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._fd)
        return os.read(self._fd, 4096).decode(errors="replace")

    @contextmanager
    def _raw_mode(self) -> Generator[None, None, None]:
        """Keys come one by one and unseen; Ctrl-C still interrupts."""
        before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        try:
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)
