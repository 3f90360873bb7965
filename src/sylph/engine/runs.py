"""Commands under the journaled runner, as the engine sees them: order, follow, find again."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sylph.core.errors import ToolError
from sylph.core.run import Box, Lost, Order, Ran, Show
from sylph.engine import processes
from sylph.engine import runner as script
from sylph.engine.redact.veil import Veil
from sylph.engine.sandbox import Grip, Sandbox
from sylph.engine.sealed import derived, sealed_at
from sylph.engine.story import Ended, Story, evidence_of, read_story

PROGRAM = script.__file__
# A notice can get lost when the socket is full; then this long passes until the next look.
LOOK = 0.25
# Without a runner of our own there is nobody to send notices.
POLL = 0.03
READY = b"- ready"
STOPPING = 0.7
TRIES = 3
OLD = 24 * 3600.0
# Between a command's key and the number of the order, where there had to be more than one.
AGAIN = "~"


class Notice:
    """Wakes whoever follows a command: there is output, or it may have ended."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.ended = False

    def wake(self, *, ended: bool) -> None:
        self.ended = self.ended or ended
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """False if nothing came: then the files have to be looked at, for a notice can get lost."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Runner:
    """The one runner of this process. It is started when it is first needed, or a little before (`warm`)."""

    def __init__(
        self,
        folder: Path,
        python: str = sys.executable,
        program: str = PROGRAM,
        sandbox: Sandbox | None = None,
        veil: Veil | None = None,
    ) -> None:
        self.folder, self._python, self._program, self.sandbox = folder, python, program, sandbox
        self._veil = veil or Veil()
        self._seals: dict[str, bytes] = {}
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._notices: dict[str, Notice] = {}
        self._unread = b""
        self._kept: set[str] = set()

    def warm(self) -> None:
        """Starts the runner without waiting for it."""
        if self._socket is None:
            self._start()
            if self.sandbox:
                self.sandbox.warm()

    async def confined(self, order: Order, grip: Grip | None) -> Order:
        """The order as the sandbox lets it run. Without a sandbox (a runtime for tests) it is as it came."""
        if self.sandbox is None:
            return replace(order, box=None)
        if grip is None:
            raise ToolError("What this command may do was not decided, so it is not run.", kind="undecided")
        return await self.sandbox.confine(order, grip)

    def order(self, key: str, order: Order) -> None:
        self.warm()
        line = {
            "do": "start",
            "key": key,
            "argv": list(order.argv),
            "cwd": order.cwd,
            "env": dict(order.env),
            "seconds": order.seconds,
            "memory": order.memory,
            "cpu": order.cpu,
            "processes": order.processes,
            "head": order.head,
            "tail": order.tail,
            "job": order.job,
            "stdin": order.stdin,
            "interactive": order.interactive,
            "title": self._veil.text(order.title or "".join(order.argv[-1:])),
            "seal": self._derived(key).hex(),
            "box": _box(order.box) if order.box else None,
        }
        if not order.job:
            self._kept.add(key)
        try:
            self._send(line)
        except OSError:
            # It died unnoticed, or hangs. What it did not get whole it does not begin.
            self._gone()
            self.warm()
            self._send(line)

    def _derived(self, name: str) -> bytes:
        """What the output of a command is sealed with: it may hold secrets, and stays until it is in the log."""
        key = self._veil.key()
        return derived(key, f"out {name}") if key else b""

    def output(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """What a command has printed, from `offset` on. Raises FileNotFoundError."""
        with (self.folder / f"{name}.out").open("rb") as file:
            file.seek(offset)
            data = file.read(size)
        if data and name not in self._seals:
            story = read_story(self.folder / f"{name}.run")
            self._seals[name] = self._derived(name) if story.intent and story.intent.sealed else b""
        return sealed_at(data, seal, offset) if data and (seal := self._seals[name]) else data

    def stop(self, key: str, why: str = "stopped") -> None:
        """Ends a command that this runner started."""
        if self._socket:
            with contextlib.suppress(OSError):
                self._send({"do": "stop", "key": key, "why": why})

    def notice(self, key: str) -> "Notice":
        return self._notices.setdefault(key, Notice())

    def found(self, key: str) -> None:
        """There is a journal that another process left."""
        self._kept.add(key)

    def forget(self, key: str) -> None:
        """The end is in the log: the journal, if there was one, has done its work."""
        self._notices.pop(key, None)
        for name in [name for name in self._kept if name.partition(AGAIN)[0] == key]:
            self._kept.discard(name)
            self._notices.pop(name, None)
            self._seals.pop(name, None)
            for kind in ("run", "out"):
                (self.folder / f"{name}.{kind}").unlink(missing_ok=True)

    def close(self) -> None:
        """Lets go of the runner; it ends when its commands have."""
        if self._socket:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._reap()

    def _reap(self) -> None:
        """The process we started only starts the runner, and is gone in a moment."""
        if self._process:
            self._process.wait()
            self._process = None

    @property
    def alive(self) -> bool:
        return self._socket is not None

    def newest(self, key: str) -> str:
        """The name of a command's journal: where an order was taken back, that of the next one."""
        name, number = key, 1
        while _size(self.folder / f"{name}.run") == 0:
            number += 1
            name = f"{key}{AGAIN}{number}"
        return name

    def revoke(self, name: str) -> bool:
        """Takes an order back; False if a runner has begun it. An empty journal says so to all runners there may be."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            (self.folder / f"{name}.run").touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _sweep(self) -> None:
        """Removes what was taken back so long ago that nobody can come to begin it."""
        for path in (*self.folder.glob("*.run"), *self.folder.glob("*.new")):
            with contextlib.suppress(FileNotFoundError):
                old = time.time() - path.stat().st_mtime > OLD
                if old and (path.suffix == ".new" or _size(path) == 0):
                    path.unlink()

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sweep()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [self._python, "-I", "-S", self._program, str(self.folder)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # Ours would stay open as long as a background job runs, and with it whoever reads it to its end.
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        ours.settimeout(0.0)
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours, self._read)

    def _send(self, line: dict[str, Any]) -> None:
        assert self._socket
        # Orders are few and the runner reads at once: a full socket means that it hangs.
        self._socket.settimeout(5.0)
        try:
            self._socket.sendall(json.dumps(line).encode() + b"\n")
        finally:
            self._socket.settimeout(0.0)

    def _read(self) -> None:
        assert self._socket
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone()
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if line == READY:
                self._reap()
            key, _, what = line.partition(b" ")
            if notice := self._notices.get(key.decode()):
                notice.wake(ended=what == b"ended")

    def _gone(self) -> None:
        """The runner died. Whoever waits looks at the journals."""
        self.close()
        for notice in self._notices.values():
            notice.wake(ended=True)


class CallRuns:
    """core.run.Runs for one call of one session."""

    def __init__(self, runner: Runner, key: str, grip: Grip | None = None) -> None:
        self._runner, self._key, self._name, self._grip = runner, key, key, grip

    async def run(self, order: Order, show: Show) -> Ran | Lost:
        order = await self._runner.confined(order, self._grip)
        ran = await self._run(order, show)
        if not isinstance(ran, Ran) or not self._grip or not self._runner.sandbox:
            return ran
        if ran.unboxed:
            raise unboxed(ran.head)
        return replace(ran, note=self._runner.sandbox.explain(order, ran, self._grip))

    async def _run(self, order: Order, show: Show) -> Ran | Lost:
        ran: Ran | Lost | None = None
        for _ in range(TRIES):
            self._name = self._runner.newest(self._key)
            self._runner.notice(self._name)
            self._runner.order(self._name, order)
            try:
                ran = await self._follow(show, mine=True)
            except asyncio.CancelledError:
                await self._stopped()
                raise
            # A runner that died before it began the command has done nothing: another one may.
            if ran or not self._runner.revoke(self._name):
                break
        return ran or self._lost(self._story())

    async def attach(self, show: Show) -> Ran | Lost | None:
        self._name = self._runner.newest(self._key)
        # Its runner may live and not have come to it yet: what is not begun now must never be.
        if self._runner.revoke(self._name):
            return None
        self._runner.found(self._name)
        return await self._follow(show, mine=False) or self._lost(self._story())

    async def _follow(self, show: Show, *, mine: bool) -> Ran | Lost | None:
        """How it ended; None if the runner died before it began it."""
        notice, offset = self._runner.notice(self._name), 0
        told = False
        while True:
            ours = mine and self._runner.alive
            if not ours or not told or notice.ended:
                story = self._story()
                if story.ended:
                    self._pass_on(show, offset, story.ended.head)
                    return self._ran(story.ended)
                # Our own runner may not have come to it yet; any other one must show that it lives.
                if not (mine and self._runner.alive) and not story.watched:
                    return self._lost(story) if story.intent else None
            offset = self._pass_on(show, offset)
            told = await notice.wait(LOOK if ours else POLL)

    def _pass_on(self, show: Show, offset: int, upto: int | None = None) -> int:
        """Shows what came since the last look. The end of a long output is not part of the stream."""
        try:
            data = self._runner.output(self._name, offset, -1 if upto is None else max(upto - offset, 0))
        except FileNotFoundError:
            return offset
        if data:
            show(data)
        return offset + len(data)

    def _ran(self, ended: Ended) -> Ran:
        whole = self._runner.output(self._name)
        head, tail = whole[: ended.head], whole[ended.head :]
        return Ran(
            exit=ended.exit,
            head=head,
            tail=tail,
            dropped=ended.bytes - len(whole),
            why=ended.why,
            seconds=ended.seconds,
            left=ended.left,
            failed=ended.failed,
            unboxed=ended.unboxed,
        )

    def _lost(self, story: Story) -> Lost:
        """The runner is gone and saw no end. Nothing may run on unwatched, so what is left is ended."""
        processes.end_marked(self._name)
        head = self._runner.output(self._name) if self._path("out").exists() else b""
        return Lost(evidence=evidence_of(story), head=head)

    async def _stopped(self) -> None:
        """Waits for the end of a command that was told to stop, a little longer than that may take."""
        self._runner.stop(self._name)
        notice = self._runner.notice(self._name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOPPING):
                while not notice.ended:
                    await notice.wait(STOPPING)
        if not self._runner.alive:
            # Nobody is there to have heard it.
            processes.end_marked(self._name)

    def _story(self) -> Story:
        return read_story(self._path("run"))

    def _path(self, kind: str) -> Path:
        return self._runner.folder / f"{self._name}.{kind}"


def unboxed(said: bytes) -> ToolError:
    return ToolError(
        "The sandbox could not be set up, so the command did not run.",
        kind="sandbox_failed",
        details={"said": said.decode("utf-8", "replace")[-1000:].strip()},
        next=["Look whether the folder it was to run in is there.", "The user can look at `sylph doctor`."],
    )


def _box(box: Box) -> dict[str, Any]:
    return {"head": box.head, "holds": box.holds, "limits": box.limits}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
