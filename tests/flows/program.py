"""The installed `sylph`, started as a user starts it: as a process, with or without a terminal."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from tests.model_server import ModelServer, Script
from tests.patience import PATIENCE, eventually

Model = Callable[[Script], Awaitable[ModelServer]]

SYLPH = str(Path(sys.executable).with_name("sylph"))
# A process gets a terminal of its own only by asking for it, after it has left the session it was born in.
ADOPT = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>]|\r")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


@dataclass
class Sylph:
    """Starts Sylph in a home and a workspace of its own."""

    home: Path
    workspace: Path
    environ: dict[str, str] = field(default_factory=dict[str, str])

    def env(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "COVERAGE_PROCESS_START") if key in os.environ}
        own = {"HOME": str(self.home), "SYLPH_HOME": str(self.home / "sylph"), "TERM": "xterm-256color"}
        return {**kept, **own, **self.environ, **more}

    async def start(self, *arguments: str, stdin: int = asyncio.subprocess.DEVNULL, **env: str) -> Process:
        return await asyncio.create_subprocess_exec(
            SYLPH,
            *arguments,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.workspace,
            env=self.env(env),
        )

    async def run(self, *arguments: str, stdin: bytes | None = None, **env: str) -> Done:
        pipe = asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE
        process = await self.start(*arguments, stdin=pipe, **env)
        return await finished(process, stdin)

    async def open(self, *arguments: str, **env: str) -> "Terminal":
        return await Terminal.open(self, arguments, env)


async def finished(process: Process, stdin: bytes | None = None) -> Done:
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def killed(process: Process) -> None:
    """Ends it by force; returns when it is dead.

    What it has started lives on and may hold its pipes: whoever reads them to their end waits for that, too.
    """
    process.kill()
    await eventually(lambda: process.returncode is not None, "the death of a process")


class Terminal:
    """A program in a terminal: type into it, wait for what it shows."""

    def __init__(self, process: Process, fd: int) -> None:
        self.process, self._fd = process, fd
        self.raw = ""
        self._grown = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, self._read)

    @classmethod
    async def open(cls, sylph: Sylph, arguments: tuple[str, ...], env: Mapping[str, str]) -> "Terminal":
        fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ADOPT, SYLPH, *arguments,
            stdin=child, stdout=child, stderr=child, cwd=sylph.workspace, env=sylph.env(env),
        )  # fmt: skip
        os.close(child)
        return cls(process, fd)

    @property
    def text(self) -> str:
        """All that was shown, without what moves the cursor."""
        return ESCAPES.sub("", self.raw)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    async def see(self, wanted: str, *, times: int = 1) -> None:
        """Waits until `wanted` was shown."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self.text.count(wanted) < times:
                    self._grown.clear()
                    await self._grown.wait()
        except TimeoutError as error:
            raise AssertionError(f"{wanted!r} was not shown. Shown was:\n{self.text}") from error

    async def end(self) -> int:
        """The exit code, once the program has ended by itself."""
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        return code

    def _read(self) -> None:
        try:
            self.raw += os.read(self._fd, 65_536).decode(errors="replace")
        except OSError:
            # The program has ended and closed its side.
            asyncio.get_running_loop().remove_reader(self._fd)
        self._grown.set()
