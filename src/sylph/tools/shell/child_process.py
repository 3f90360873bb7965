"""A child process in a session of its own: its output as it comes, and nothing of it left behind.

The pipe is read through the event loop and the end is seen through a pidfd: a child costs no thread, and under
half the CPU of asyncio's own subprocesses.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from sylph.tools.shell import process_tree

PIECE = 65_536
# After the child itself has ended, its own children may still print for so long.
DRAIN = 0.2
# Between asking a process to end and ending it.
GRACE = 0.3
TICK = 0.01
REST = 16 * PIECE


class ProcessExit(Struct, frozen=True):
    """`code` is minus the signal that killed it, `left` tells that something had to be ended, `rest` its last words."""

    code: int
    had_survivors: bool
    last_output: bytes


def start_process(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> "ChildProcess":
    """Starts a child without input, both outputs in one pipe. Raises OSError."""
    ours, theirs = os.pipe()
    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ChildProcess(child, ours)


class ChildProcess:
    """A running child. Leaving its `async with` block ends whatever still runs, also under cancellation."""

    def __init__(self, child: subprocess.Popen[bytes], pipe: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._child = child
        self._pipe = pipe
        self._ready = asyncio.Event()
        self._done = asyncio.Event()
        self._over = False
        self._drain: asyncio.TimerHandle | None = None
        self._ended: ProcessExit | None = None
        os.set_blocking(pipe, False)
        self._watch = _open_pidfd(child.pid)
        if self._watch is None:
            self._poll_exit()
        else:
            self._loop.add_reader(self._watch, self._on_exit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.terminate()

    async def read_chunk(self) -> bytes:
        """The next bytes of output; none when it is closed, or when the child has been gone for a moment."""
        if self._over:
            return b""
        # Always by way of the loop, so that a child that never stops talking cannot hold up a time-out.
        self._ready.clear()
        self._loop.add_reader(self._pipe, self._ready.set)
        try:
            await self._ready.wait()
        finally:
            self._loop.remove_reader(self._pipe)
        return b"" if self._over else os.read(self._pipe, PIECE)

    async def wait_exit(self) -> None:
        """Returns when the child itself has ended."""
        await self._done.wait()

    async def terminate(self) -> ProcessExit:
        """Ends all that still runs: asked first, killed after a moment. A second call tells the same."""
        if self._ended:
            return self._ended
        left = process_tree.has_live_processes(self._child.pid)
        try:
            if left and self._done.is_set():
                await asyncio.sleep(TICK)  # the last of them may be about to go by itself
                left = process_tree.has_live_processes(self._child.pid)
            if left:
                await self._ask_to_exit()
        finally:
            self._ended = self._reap_child(left=left)
        return self._ended

    async def _ask_to_exit(self) -> None:
        process_tree.terminate_session(self._child.pid)
        for _ in range(round(GRACE / TICK)):
            if not process_tree.has_live_processes(self._child.pid):
                return
            await asyncio.sleep(TICK)

    def _reap_child(self, *, left: bool) -> ProcessExit:
        if left:
            process_tree.kill_session(self._child.pid)
        # Reaped only now: until then nobody else can get the child's number.
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(0.1)
        rest = _drain_pipe(self._pipe)
        os.close(self._pipe)
        if self._watch is not None:
            self._loop.remove_reader(self._watch)
            os.close(self._watch)
        if self._drain:
            self._drain.cancel()
        self._over = True
        code = self._child.returncode
        return ProcessExit(-signal.SIGKILL if code is None else code, left, rest)

    def _poll_exit(self) -> None:
        """Where the system has no pidfd."""
        if self._child.poll() is None and not self._over:
            self._loop.call_later(TICK, self._poll_exit)
        else:
            self._on_exit()

    def _on_exit(self) -> None:
        if self._watch is not None:
            self._loop.remove_reader(self._watch)
        self._done.set()
        self._drain = self._loop.call_later(DRAIN, self._stop_reading)

    def _stop_reading(self) -> None:
        self._over = True
        self._ready.set()


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # old kernels and strict sandboxes lack the call
        return None


def _drain_pipe(pipe: int) -> bytes:
    """What is still in the pipe."""
    found = b""
    with suppress(BlockingIOError):
        while len(found) < REST and (data := os.read(pipe, PIECE)):
            found += data
    return found
