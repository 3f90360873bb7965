"""The journaled runner: a process of its own that runs commands, writes down what becomes of them, and outlives Sylph.

It needs nothing but the standard library and is started as a script, with its folder as the argument. Its parent writes
orders to the socket on file descriptor 0, one line of JSON each, and gets a short line per event back: `KEY output`,
`KEY ended`. What happened is not in those lines but in two files per command, which anybody can read,
also when the parent and the runner are long gone:

    KEY.run   lines of JSON: {"intent": …}, {"started": …}, {"ended": …}
    KEY.out   the output as it came, up to a limit; at the end, the last part of what went over it. Where the order has
              a `seal`, a key that is written nowhere, only who can derive it can read the output.

A command in the background has a third one while it runs, through which whoever may open it reaches its runner:

    KEY.in    a FIFO, lines of JSON in: {"do": "input", "id": …, "text": …, "close": …}, {"do": "stop"}

An input is taken once: a second one with the same id is not, so whoever does not know may send it again.

Whoever finds no journal of an order can take it back, by making an empty one: then no runner begins it any more.

When the parent is gone the runner finishes what runs, and ends. It leaves no process behind: what a command leaves
running becomes the runner's own child (it is a subreaper, where the kernel knows such a thing) and is ended with it.

An order with a `box` is for bubblewrap: it is given open files in place of paths that somebody could swap, and says
by a pipe of its own whether the command came to run. Killing it takes its whole process namespace along. The next
sandbox is set up ahead (see spare.py).
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any

if __package__ != "sylph.engine.commands":
    # Started as a script, without a way to the packages: ours is the one this file lies in.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))

from sylph.engine.commands.journal import CommandJournal
from sylph.engine.commands.prewarmed_sandbox import PrewarmedSandbox, is_prewarmable, prewarm_sandbox
from sylph.engine.commands.processes import (
    RUN_MARK,
    adopt_orphans,
    boot_id,
    child_pids,
    descendant_pids,
    exceeded_limit,
    exit_status,
    freeze_tree,
    has_run_mark,
    own_child_pids,
    start_time,
)
from sylph.engine.commands.sandbox_start import build_command_line, read_status_pipe

KILL_GRACE = 0.3  # seconds between asking a command to end and ending it
DRAIN_SECONDS = 0.2  # seconds for output that is still on its way when a command has ended
CHECK_INTERVAL = 0.2  # seconds between two looks at memory, processor time and processes
CHUNK = 65536
MAX_UNREAD = 4_000_000  # bytes that wait for a command to read them, before no more are taken


class RunningCommand:
    """One command while it runs."""

    def __init__(
        self, order: dict[str, Any], process: subprocess.Popen[bytes], journal: CommandJournal, status: int | None
    ) -> None:
        self.order, self.key, self.process, self.journal, self.status = order, order["key"], process, journal, status
        self.inside = 0
        assert process.stdout
        self.pipe: int | None = process.stdout.fileno()
        os.set_blocking(self.pipe, False)
        self.stdin = process.stdin
        self.unsent = bytearray((order.get("stdin") or "").encode("utf-8", "replace"))
        self.closing = not order.get("interactive", False)
        self.taken: set[str] = set()
        self.ears = -1
        self.heard = b""
        self.limits: dict[str, float] = {
            what: order[what] for what in ("processes", "memory", "cpu") if order.get(what)
        }
        self.began = time.monotonic()
        self.deadline: float | None = self.began + order["seconds"] if order.get("seconds") else None
        self.kill_at: float | None = None
        self.drain_until: float | None = None
        self.code: int | None = None
        self.why = ""


class JournaledRunner:
    def __init__(self, parent: socket.socket, folder: str) -> None:
        self._parent: socket.socket | None = parent
        self._folder = folder
        self._jobs: dict[str, RunningCommand] = {}
        self._orders = b""
        self._selector = selectors.DefaultSelector()
        self._beat = 0.0
        self._spare: PrewarmedSandbox | None = None

    def serve_requests(self) -> None:
        """Works until the parent is gone and nothing runs any more."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, _ignore_signal)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap_children(woken))
        assert self._parent
        self._selector.register(self._parent, selectors.EVENT_READ, self._read_requests)
        while self._parent or self._jobs:
            for key, _ in self._selector.select(self._next_timeout()):
                key.data()
            self._check_deadlines()

    # Orders

    def _read_requests(self) -> None:
        assert self._parent
        try:
            data = self._parent.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._parent)
            self._parent.close()
            self._parent = None
            self._drop_prewarmed()
            return
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            self._handle_request(json.loads(line))

    def _handle_request(self, order: dict[str, Any]) -> None:
        if order["do"] == "start":
            self._start_command(order)
        elif order["do"] == "stop" and (job := self._jobs.get(order["key"])):
            self._stop_command(job, order.get("why", "stopped"))

    def _start_command(self, order: dict[str, Any]) -> None:
        journal = CommandJournal(self._folder, order["key"], order["head"], order["tail"], order.get("seal", ""))
        me = os.getpid()
        intent = {"runner": me, "runner_start": start_time(me), "boot": boot_id(), "at": time.time()}
        intent |= {name: order[name] for name in ("job", "title", "interactive") if name in order}
        intent |= {"sealed": True} if order.get("seal") else {}
        if not journal.begin(**intent):
            return
        job = self._start_prewarmed(order, journal) or self._start_fresh(order, journal)
        if job is None:
            return
        if order.get("job"):
            self._open_input(job)
        journal.append_line(started={"pid": job.process.pid, "start": start_time(job.process.pid)})
        self._jobs[job.key] = job
        assert job.process.stdout
        self._selector.register(job.process.stdout, selectors.EVENT_READ, lambda: self._copy_output(job))
        if job.process.stdin:
            os.set_blocking(job.process.stdin.fileno(), False)
            self._feed_stdin(job)

    def _start_prewarmed(self, order: dict[str, Any], journal: CommandJournal) -> RunningCommand | None:
        """The command in the sandbox that was set up ahead, if it is meant for one like that."""
        spare = self._spare
        if spare is None or not order.get("box"):
            return None
        if not spare.fits_request(order) or not spare.hand_over(order):
            self._drop_prewarmed()
            return None
        self._selector.unregister(spare.ready_fd)
        self._spare = None
        job = RunningCommand(order, spare.process, journal, spare.status)
        job.inside = spare.inside
        return job

    def _start_fresh(self, order: dict[str, Any], journal: CommandJournal) -> RunningCommand | None:
        argv, held, status = build_command_line(order)
        piped = order.get("interactive") or order.get("stdin") is not None
        inside = status is not None
        try:
            process = subprocess.Popen(
                argv,
                cwd="/" if inside else order["cwd"],
                env={RUN_MARK: order["key"]} if inside else {**order["env"], RUN_MARK: order["key"]},
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
                pass_fds=held,
            )
        except OSError as error:
            journal.end(failed=error.errno)
            self._notify_parent(order["key"], "ended")
            return None
        finally:
            for fd in held:
                os.close(fd)
        return RunningCommand(order, process, journal, status)

    # The sandbox of the next command

    def _prewarm_next(self, order: dict[str, Any]) -> None:
        if (
            self._parent
            and not self._spare
            and is_prewarmable(order)
            and (spare := prewarm_sandbox(order, time.monotonic()))
        ):
            self._spare = spare
            self._selector.register(spare.ready_fd, selectors.EVENT_READ, self._read_prewarmed)

    def _read_prewarmed(self) -> None:
        if self._spare and not self._spare.read_ready():
            self._drop_prewarmed()

    def _drop_prewarmed(self) -> None:
        if self._spare:
            self._selector.unregister(self._spare.ready_fd)
            self._spare.discard()
            self._spare = None

    # What a command is told while it runs

    def _open_input(self, job: RunningCommand) -> None:
        path = f"{self._folder}/{job.key}.in"
        with contextlib.suppress(OSError):
            os.mkfifo(path, 0o600)
            # For writing too: then it has no end when the last writer goes.
            job.ears = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._selector.register(job.ears, selectors.EVENT_READ, lambda: self._read_input(job))

    def _read_input(self, job: RunningCommand) -> None:
        with contextlib.suppress(BlockingIOError):
            *lines, job.heard = (job.heard + os.read(job.ears, CHUNK)).split(b"\n")
            for line in lines:
                # Who was killed in the middle of a line has left a piece of one.
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._handle_input(job, json.loads(line))

    def _handle_input(self, job: RunningCommand, said: dict[str, Any]) -> None:
        if said["do"] == "stop":
            self._stop_command(job, "stopped")
        elif said["do"] == "input" and said["id"] not in job.taken:
            text = said["text"].encode()
            taken = bool(job.stdin) and not job.closing and len(job.unsent) + len(text) <= MAX_UNREAD
            if taken:
                job.taken.add(said["id"])
                job.unsent += text
                job.closing = said.get("close", False)
            still = bool(job.stdin) and not job.closing
            job.journal.append_line(input={"id": said["id"], "taken": taken, "open": still})
            self._feed_stdin(job)

    def _feed_stdin(self, job: RunningCommand) -> None:
        """Hands over as much as the command's pipe takes; watched is the pipe only while something waits."""
        try:
            while job.stdin and job.unsent:
                del job.unsent[: os.write(job.stdin.fileno(), job.unsent[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            job.unsent.clear()
            job.closing = True
        if job.stdin is None:
            return
        watched = job.stdin in self._selector.get_map()
        if watched and not job.unsent:
            self._selector.unregister(job.stdin)
        elif job.unsent and not watched:
            self._selector.register(job.stdin, selectors.EVENT_WRITE, lambda: self._feed_stdin(job))
        if job.closing and not job.unsent:
            job.stdin.close()
            job.stdin = None

    # What happens

    def _copy_output(self, job: RunningCommand) -> None:
        if job.pipe is None:
            return
        try:
            data = os.read(job.pipe, CHUNK)
        except BlockingIOError:
            return
        if data:
            job.journal.append_output(data)
            self._notify_parent(job.key, "output")
            return
        self._close_pipe(job)
        if job.code is not None:
            self._finish_command(job)

    def _reap_children(self, woken: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(woken, CHUNK)
        for job in list(self._jobs.values()):
            if job.code is None and (code := exit_status(job.process.pid)) is not None:
                job.code, job.drain_until = code, time.monotonic() + DRAIN_SECONDS
                if job.pipe is None:
                    self._finish_command(job)
        if self._spare and exit_status(self._spare.process.pid) is not None:
            # What it may have left inside waits for a script, and ends without one.
            self._drop_prewarmed()
        kept = {each.process.pid for each in (*self._jobs.values(), *filter(None, (self._spare,)))}
        for pid in set(own_child_pids()) - kept:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def _check_deadlines(self) -> None:
        """What time brings: limits reached, patience at an end."""
        now = time.monotonic()
        beat = now - self._beat >= CHECK_INTERVAL
        for job in list(self._jobs.values()):
            if job.drain_until and now >= job.drain_until:
                self._finish_command(job)
            elif job.kill_at and now >= job.kill_at:
                self._kill_command(job, signal.SIGKILL)
                job.kill_at = now + KILL_GRACE
            elif job.deadline and now >= job.deadline and not job.why:
                self._stop_command(job, "time")
            elif beat and not job.why and (over := exceeded_limit(job.process.pid, job.key, job.limits)):
                self._stop_command(job, over)
        if beat:
            self._beat = now
        if self._spare and now >= self._spare.expires_at:
            self._drop_prewarmed()

    def _next_timeout(self) -> float | None:
        moments = [
            moment for job in self._jobs.values() for moment in (job.deadline, job.kill_at, job.drain_until) if moment
        ]
        if self._spare:
            moments.append(self._spare.expires_at)
        if any(job.limits for job in self._jobs.values()):
            moments.append(self._beat + CHECK_INTERVAL)
        return max(min(moments) - time.monotonic(), 0.0) if moments else None

    def _stop_command(self, job: RunningCommand, why: str) -> None:
        if not job.why:
            job.why = why
            job.kill_at = time.monotonic() + KILL_GRACE
            # What makes more and more of itself is not asked: there would be more to ask each time.
            self._kill_command(job, signal.SIGKILL if why == "processes" else signal.SIGTERM)

    def _finish_command(self, job: RunningCommand) -> None:
        del self._jobs[job.key]
        self._close_pipe(job)
        job.unsent.clear()
        job.closing = True
        self._feed_stdin(job)
        if job.ears >= 0:
            self._selector.unregister(job.ears)
            os.close(job.ears)
            os.unlink(f"{self._folder}/{job.key}.in")
        inside, ran = (0, True) if job.status is None else read_status_pipe(job.status)
        left = self._kill_leftovers(job, inside or job.inside)
        # Reaped only now: until then no other process can get its number, and with it our signals.
        job.process.wait()
        took = round(time.monotonic() - job.began, 3)
        unboxed = {} if ran or (job.code or 0) < 0 else {"unboxed": True}
        job.journal.end(exit=job.code, why=job.why, seconds=took, left=left, **unboxed)
        self._notify_parent(job.key, "ended")
        self._prewarm_next(job.order)

    def _close_pipe(self, job: RunningCommand) -> None:
        if job.pipe is not None and job.process.stdout:
            self._selector.unregister(job.process.stdout)
            job.process.stdout.close()
            job.pipe = None

    # The family of a command

    def _kill_command(self, job: RunningCommand, number: int) -> None:
        kin = (freeze_tree if job.why == "processes" else descendant_pids)(job.process.pid, job.key)
        # The end of bubblewrap is the end of all inside, at once: what may end by itself is asked alone.
        whole = job.status is None or number == signal.SIGKILL
        if whole:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(job.process.pid, number)
        for pid in kin if whole else [pid for pid in kin if pid != job.process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _kill_leftovers(self, job: RunningCommand, inside: int) -> bool:
        """Ends what the command left running; each pass may orphan others, which then become visible here.

        The first process `inside` of a sandbox is gone only when all others in there are. Where there are none it is
        not waited for: the kernel takes its time to clear the sandbox away.
        """
        found = not inside and bool(descendant_pids(job.process.pid, job.key))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(job.process.pid, signal.SIGKILL)
        for _ in range(100):
            left = [
                pid for pid in own_child_pids() if (child_pids(pid) if pid == inside else has_run_mark(pid, job.key))
            ]
            if not left:
                break
            found = found or left != [inside]
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        return found

    def _notify_parent(self, key: str, what: str) -> None:
        if self._parent:
            with contextlib.suppress(OSError):
                self._parent.send(f"{key} {what}\n".encode(), socket.MSG_DONTWAIT)


def _ignore_signal(_number: int, _frame: object) -> None:
    """Nothing to do but to be there: the signal has woken the loop."""


def main() -> None:
    # Nobody's child: the parent need not wait for it, nor it for the parent.
    if os.fork():
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        # A handler and not SIG_IGN: that would be handed down to the commands.
        signal.signal(number, _ignore_signal)
    adopt_orphans()
    parent = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    with contextlib.suppress(OSError):
        parent.sendall(b"- ready\n")
    JournaledRunner(parent, sys.argv[1]).serve_requests()


if __name__ == "__main__":
    main()
