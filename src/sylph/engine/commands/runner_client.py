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

from sylph.core.command_run import CommandResult, CommandSpec, LostCommand, OutputSink, SandboxWrapper
from sylph.core.errors import ToolError
from sylph.disk.encryption import apply_keystream_at, derive_key
from sylph.engine.commands import processes
from sylph.engine.commands import runner_process as script
from sylph.engine.commands.journal_reader import CommandEnd, JournaledCommand, describe_loss, read_journal
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.sandbox import CommandRights, CommandSandbox

RUNNER_PROGRAM = script.__file__
# A notice can get lost when the socket is full; then this long passes until the next look.
NOTICE_TIMEOUT = 0.25
# Without a runner of our own there is nobody to send notices.
POLL_SECONDS = 0.03
READY = b"- ready"
STOP_SECONDS = 0.7
MAX_ATTEMPTS = 3
STALE_SECONDS = 24 * 3600.0
# Between a command's key and the number of the order, where there had to be more than one.
ATTEMPT_SEPARATOR = "~"


class CommandWakeup:
    """Wakes whoever follows a command: there is output, or it may have ended."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.ended = False

    def notify(self, *, ended: bool) -> None:
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


class RunnerClient:
    """The one runner of this process. It is started when it is first needed, or a little before (`warm`)."""

    def __init__(
        self,
        folder: Path,
        python: str = sys.executable,
        program: str = RUNNER_PROGRAM,
        sandbox: CommandSandbox | None = None,
        redactor: NoRedaction | None = None,
    ) -> None:
        self.folder, self._python, self._program, self.sandbox = folder, python, program, sandbox
        self._redactor = redactor or NoRedaction()
        self._seals: dict[str, bytes] = {}
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._notices: dict[str, CommandWakeup] = {}
        self._unread = b""
        self._kept: set[str] = set()

    def ensure_started(self) -> None:
        """Starts the runner without waiting for it."""
        if self._socket is None:
            self._start_process()
            if self.sandbox:
                self.sandbox.warm_up()

    async def confine_command(self, order: CommandSpec, rights: CommandRights | None) -> CommandSpec:
        """The order as the sandbox lets it run. Without a sandbox (a runtime for tests) it is as it came."""
        if self.sandbox is None:
            return replace(order, box=None)
        if rights is None:
            raise ToolError("What this command may do was not decided, so it is not run.", kind="undecided")
        return await self.sandbox.confine_command(order, rights)

    def start_command(self, key: str, order: CommandSpec) -> None:
        self.ensure_started()
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
            "title": self._redactor.redact_text(order.title or "".join(order.argv[-1:])),
            "seal": self._derive_output_key(key).hex(),
            "box": _encode_box(order.box) if order.box else None,
        }
        if not order.job:
            self._kept.add(key)
        try:
            self._send_request(line)
        except OSError:
            # It died unnoticed, or hangs. What it did not get whole it does not begin.
            self._handle_runner_death()
            self.ensure_started()
            self._send_request(line)

    def _derive_output_key(self, name: str) -> bytes:
        """What the output of a command is sealed with: it may hold secrets, and stays until it is in the log."""
        key = self._redactor.encryption_key()
        return derive_key(key, f"out {name}") if key else b""

    def read_output(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """What a command has printed, from `offset` on. Raises FileNotFoundError."""
        with (self.folder / f"{name}.out").open("rb") as file:
            file.seek(offset)
            data = file.read(size)
        if data and name not in self._seals:
            story = read_journal(self.folder / f"{name}.run")
            self._seals[name] = self._derive_output_key(name) if story.intent and story.intent.sealed else b""
        return apply_keystream_at(data, seal, offset) if data and (seal := self._seals[name]) else data

    def stop_command(self, key: str, why: str = "stopped") -> None:
        """Ends a command that this runner started."""
        if self._socket:
            with contextlib.suppress(OSError):
                self._send_request({"do": "stop", "key": key, "why": why})

    def wakeup_for(self, key: str) -> "CommandWakeup":
        return self._notices.setdefault(key, CommandWakeup())

    def track_journal(self, key: str) -> None:
        """There is a journal that another process left."""
        self._kept.add(key)

    def remove_journal(self, key: str) -> None:
        """The end is in the log: the journal, if there was one, has done its work."""
        self._notices.pop(key, None)
        for name in [name for name in self._kept if name.partition(ATTEMPT_SEPARATOR)[0] == key]:
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
            self._reap_launcher()

    def _reap_launcher(self) -> None:
        """The process we started only starts the runner, and is gone in a moment."""
        if self._process:
            self._process.wait()
            self._process = None

    @property
    def alive(self) -> bool:
        return self._socket is not None

    def newest_journal(self, key: str) -> str:
        """The name of a command's journal: where an order was taken back, that of the next one."""
        name, number = key, 1
        while _file_size(self.folder / f"{name}.run") == 0:
            number += 1
            name = f"{key}{ATTEMPT_SEPARATOR}{number}"
        return name

    def revoke_command(self, name: str) -> bool:
        """Takes an order back; False if a runner has begun it. An empty journal says so to all runners there may be."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            (self.folder / f"{name}.run").touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _remove_stale_files(self) -> None:
        """Removes what was taken back so long ago that nobody can come to begin it."""
        for path in (*self.folder.glob("*.run"), *self.folder.glob("*.new")):
            with contextlib.suppress(FileNotFoundError):
                old = time.time() - path.stat().st_mtime > STALE_SECONDS
                if old and (path.suffix == ".new" or _file_size(path) == 0):
                    path.unlink()

    def _start_process(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._remove_stale_files()
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
        asyncio.get_running_loop().add_reader(ours, self._read_notices)

    def _send_request(self, line: dict[str, Any]) -> None:
        assert self._socket
        # Orders are few and the runner reads at once: a full socket means that it hangs.
        self._socket.settimeout(5.0)
        try:
            self._socket.sendall(json.dumps(line).encode() + b"\n")
        finally:
            self._socket.settimeout(0.0)

    def _read_notices(self) -> None:
        assert self._socket
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._handle_runner_death()
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if line == READY:
                self._reap_launcher()
            key, _, what = line.partition(b" ")
            if notice := self._notices.get(key.decode()):
                notice.notify(ended=what == b"ended")

    def _handle_runner_death(self) -> None:
        """The runner died. Whoever waits looks at the journals."""
        self.close()
        for notice in self._notices.values():
            notice.notify(ended=True)


class JournaledCommands:
    """core.run.Runs for one call of one session."""

    def __init__(self, runner: RunnerClient, key: str, rights: CommandRights | None = None) -> None:
        self._runner, self._key, self._name, self._rights = runner, key, key, rights

    async def run(self, order: CommandSpec, show: OutputSink) -> CommandResult | LostCommand:
        order = await self._runner.confine_command(order, self._rights)
        ran = await self._run_with_retries(order, show)
        if not isinstance(ran, CommandResult) or not self._rights or not self._runner.sandbox:
            return ran
        if ran.unboxed:
            raise sandbox_failure(ran.head)
        return replace(ran, note=self._runner.sandbox.explain_failure(order, ran, self._rights))

    async def _run_with_retries(self, order: CommandSpec, show: OutputSink) -> CommandResult | LostCommand:
        ran: CommandResult | LostCommand | None = None
        for _ in range(MAX_ATTEMPTS):
            self._name = self._runner.newest_journal(self._key)
            self._runner.wakeup_for(self._name)
            self._runner.start_command(self._name, order)
            try:
                ran = await self._follow_command(show, mine=True)
            except asyncio.CancelledError:
                await self._stop_and_wait()
                raise
            # A runner that died before it began the command has done nothing: another one may.
            if ran or not self._runner.revoke_command(self._name):
                break
        return ran or self._end_lost_command(self._read_journal())

    async def attach(self, show: OutputSink) -> CommandResult | LostCommand | None:
        self._name = self._runner.newest_journal(self._key)
        # Its runner may live and not have come to it yet: what is not begun now must never be.
        if self._runner.revoke_command(self._name):
            return None
        self._runner.track_journal(self._name)
        return await self._follow_command(show, mine=False) or self._end_lost_command(self._read_journal())

    async def _follow_command(self, show: OutputSink, *, mine: bool) -> CommandResult | LostCommand | None:
        """How it ended; None if the runner died before it began it."""
        notice, offset = self._runner.wakeup_for(self._name), 0
        told = False
        while True:
            ours = mine and self._runner.alive
            if not ours or not told or notice.ended:
                story = self._read_journal()
                if story.ended:
                    self._forward_output(show, offset, story.ended.head)
                    return self._build_result(story.ended)
                # Our own runner may not have come to it yet; any other one must show that it lives.
                if not (mine and self._runner.alive) and not story.runner_alive:
                    return self._end_lost_command(story) if story.intent else None
            offset = self._forward_output(show, offset)
            told = await notice.wait(NOTICE_TIMEOUT if ours else POLL_SECONDS)

    def _forward_output(self, show: OutputSink, offset: int, upto: int | None = None) -> int:
        """Shows what came since the last look. The end of a long output is not part of the stream."""
        try:
            data = self._runner.read_output(self._name, offset, -1 if upto is None else max(upto - offset, 0))
        except FileNotFoundError:
            return offset
        if data:
            show(data)
        return offset + len(data)

    def _build_result(self, ended: CommandEnd) -> CommandResult:
        whole = self._runner.read_output(self._name)
        head, tail = whole[: ended.head], whole[ended.head :]
        return CommandResult(
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

    def _end_lost_command(self, story: JournaledCommand) -> LostCommand:
        """The runner is gone and saw no end. Nothing may run on unwatched, so what is left is ended."""
        processes.kill_marked(self._name)
        head = self._runner.read_output(self._name) if self._file_path("out").exists() else b""
        return LostCommand(evidence=describe_loss(story), head=head)

    async def _stop_and_wait(self) -> None:
        """Waits for the end of a command that was told to stop, a little longer than that may take."""
        self._runner.stop_command(self._name)
        notice = self._runner.wakeup_for(self._name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while not notice.ended:
                    await notice.wait(STOP_SECONDS)
        if not self._runner.alive:
            # Nobody is there to have heard it.
            processes.kill_marked(self._name)

    def _read_journal(self) -> JournaledCommand:
        return read_journal(self._file_path("run"))

    def _file_path(self, kind: str) -> Path:
        return self._runner.folder / f"{self._name}.{kind}"


def sandbox_failure(said: bytes) -> ToolError:
    return ToolError(
        "The sandbox could not be set up, so the command did not run.",
        kind="sandbox_failed",
        details={"said": said.decode("utf-8", "replace")[-1000:].strip()},
        next=["Look whether the folder it was to run in is there.", "The user can look at `sylph doctor`."],
    )


def _encode_box(box: SandboxWrapper) -> dict[str, Any]:
    return {"head": box.head, "holds": box.holds, "limits": box.limits}


def _file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
