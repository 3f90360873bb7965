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

if __package__ != "sylph.engine":
    # Started as a script, without a way to the packages: ours is the one this file lies in.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from sylph.engine.boxed import boxed, heard
from sylph.engine.journal import Journal
from sylph.engine.processes import (
    MARK,
    adopt_orphans,
    adopted,
    boot_id,
    children,
    ended,
    exceeded,
    family,
    freeze,
    marked,
    start_time,
)
from sylph.engine.spare import Spare, prepared, usable

GRACE = 0.3  # seconds between asking a command to end and ending it
DRAIN = 0.2  # seconds for output that is still on its way when a command has ended
BEAT = 0.2  # seconds between two looks at memory, processor time and processes
CHUNK = 65536
UNREAD = 4_000_000  # bytes that wait for a command to read them, before no more are taken


class Job:
    """One command while it runs."""

    def __init__(
        self, order: dict[str, Any], process: subprocess.Popen[bytes], journal: Journal, status: int | None
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


class Runner:
    def __init__(self, parent: socket.socket, folder: str) -> None:
        self._parent: socket.socket | None = parent
        self._folder = folder
        self._jobs: dict[str, Job] = {}
        self._orders = b""
        self._selector = selectors.DefaultSelector()
        self._beat = 0.0
        self._spare: Spare | None = None

    def run(self) -> None:
        """Works until the parent is gone and nothing runs any more."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, _wake)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))
        assert self._parent
        self._selector.register(self._parent, selectors.EVENT_READ, self._read_orders)
        while self._parent or self._jobs:
            for key, _ in self._selector.select(self._patience()):
                key.data()
            self._look()

    # Orders

    def _read_orders(self) -> None:
        assert self._parent
        try:
            data = self._parent.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._parent)
            self._parent.close()
            self._parent = None
            self._drop_spare()
            return
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "start":
            self._start(order)
        elif order["do"] == "stop" and (job := self._jobs.get(order["key"])):
            self._stop(job, order.get("why", "stopped"))

    def _start(self, order: dict[str, Any]) -> None:
        journal = Journal(self._folder, order["key"], order["head"], order["tail"], order.get("seal", ""))
        me = os.getpid()
        intent = {"runner": me, "runner_start": start_time(me), "boot": boot_id(), "at": time.time()}
        intent |= {name: order[name] for name in ("job", "title", "interactive") if name in order}
        intent |= {"sealed": True} if order.get("seal") else {}
        if not journal.begin(**intent):
            return
        job = self._handed(order, journal) or self._begun(order, journal)
        if job is None:
            return
        if order.get("job"):
            self._listen(job)
        journal.note(started={"pid": job.process.pid, "start": start_time(job.process.pid)})
        self._jobs[job.key] = job
        assert job.process.stdout
        self._selector.register(job.process.stdout, selectors.EVENT_READ, lambda: self._copy(job))
        if job.process.stdin:
            os.set_blocking(job.process.stdin.fileno(), False)
            self._feed(job)

    def _handed(self, order: dict[str, Any], journal: Journal) -> Job | None:
        """The command in the sandbox that was set up ahead, if it is meant for one like that."""
        spare = self._spare
        if spare is None or not order.get("box"):
            return None
        if not spare.fits(order) or not spare.give(order):
            self._drop_spare()
            return None
        self._selector.unregister(spare.heard)
        self._spare = None
        job = Job(order, spare.process, journal, spare.status)
        job.inside = spare.inside
        return job

    def _begun(self, order: dict[str, Any], journal: Journal) -> Job | None:
        argv, held, status = boxed(order)
        piped = order.get("interactive") or order.get("stdin") is not None
        inside = status is not None
        try:
            process = subprocess.Popen(
                argv,
                cwd="/" if inside else order["cwd"],
                env={MARK: order["key"]} if inside else {**order["env"], MARK: order["key"]},
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
                pass_fds=held,
            )
        except OSError as error:
            journal.end(failed=error.errno)
            self._tell(order["key"], "ended")
            return None
        finally:
            for fd in held:
                os.close(fd)
        return Job(order, process, journal, status)

    # The sandbox of the next command

    def _prepare(self, order: dict[str, Any]) -> None:
        if self._parent and not self._spare and usable(order) and (spare := prepared(order, time.monotonic())):
            self._spare = spare
            self._selector.register(spare.heard, selectors.EVENT_READ, self._heard_spare)

    def _heard_spare(self) -> None:
        if self._spare and not self._spare.hear():
            self._drop_spare()

    def _drop_spare(self) -> None:
        if self._spare:
            self._selector.unregister(self._spare.heard)
            self._spare.drop()
            self._spare = None

    # What a command is told while it runs

    def _listen(self, job: Job) -> None:
        path = f"{self._folder}/{job.key}.in"
        with contextlib.suppress(OSError):
            os.mkfifo(path, 0o600)
            # For writing too: then it has no end when the last writer goes.
            job.ears = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._selector.register(job.ears, selectors.EVENT_READ, lambda: self._hear(job))

    def _hear(self, job: Job) -> None:
        with contextlib.suppress(BlockingIOError):
            *lines, job.heard = (job.heard + os.read(job.ears, CHUNK)).split(b"\n")
            for line in lines:
                # Who was killed in the middle of a line has left a piece of one.
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._mind(job, json.loads(line))

    def _mind(self, job: Job, said: dict[str, Any]) -> None:
        if said["do"] == "stop":
            self._stop(job, "stopped")
        elif said["do"] == "input" and said["id"] not in job.taken:
            text = said["text"].encode()
            taken = bool(job.stdin) and not job.closing and len(job.unsent) + len(text) <= UNREAD
            if taken:
                job.taken.add(said["id"])
                job.unsent += text
                job.closing = said.get("close", False)
            still = bool(job.stdin) and not job.closing
            job.journal.note(input={"id": said["id"], "taken": taken, "open": still})
            self._feed(job)

    def _feed(self, job: Job) -> None:
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
            self._selector.register(job.stdin, selectors.EVENT_WRITE, lambda: self._feed(job))
        if job.closing and not job.unsent:
            job.stdin.close()
            job.stdin = None

    # What happens

    def _copy(self, job: Job) -> None:
        if job.pipe is None:
            return
        try:
            data = os.read(job.pipe, CHUNK)
        except BlockingIOError:
            return
        if data:
            job.journal.output(data)
            self._tell(job.key, "output")
            return
        self._close_pipe(job)
        if job.code is not None:
            self._end(job)

    def _reap(self, woken: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(woken, CHUNK)
        for job in list(self._jobs.values()):
            if job.code is None and (code := ended(job.process.pid)) is not None:
                job.code, job.drain_until = code, time.monotonic() + DRAIN
                if job.pipe is None:
                    self._end(job)
        if self._spare and ended(self._spare.process.pid) is not None:
            # What it may have left inside waits for a script, and ends without one.
            self._drop_spare()
        kept = {each.process.pid for each in (*self._jobs.values(), *filter(None, (self._spare,)))}
        for pid in set(adopted()) - kept:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def _look(self) -> None:
        """What time brings: limits reached, patience at an end."""
        now = time.monotonic()
        beat = now - self._beat >= BEAT
        for job in list(self._jobs.values()):
            if job.drain_until and now >= job.drain_until:
                self._end(job)
            elif job.kill_at and now >= job.kill_at:
                self._kill(job, signal.SIGKILL)
                job.kill_at = now + GRACE
            elif job.deadline and now >= job.deadline and not job.why:
                self._stop(job, "time")
            elif beat and not job.why and (over := exceeded(job.process.pid, job.key, job.limits)):
                self._stop(job, over)
        if beat:
            self._beat = now
        if self._spare and now >= self._spare.until:
            self._drop_spare()

    def _patience(self) -> float | None:
        moments = [
            moment for job in self._jobs.values() for moment in (job.deadline, job.kill_at, job.drain_until) if moment
        ]
        if self._spare:
            moments.append(self._spare.until)
        if any(job.limits for job in self._jobs.values()):
            moments.append(self._beat + BEAT)
        return max(min(moments) - time.monotonic(), 0.0) if moments else None

    def _stop(self, job: Job, why: str) -> None:
        if not job.why:
            job.why = why
            job.kill_at = time.monotonic() + GRACE
            # What makes more and more of itself is not asked: there would be more to ask each time.
            self._kill(job, signal.SIGKILL if why == "processes" else signal.SIGTERM)

    def _end(self, job: Job) -> None:
        del self._jobs[job.key]
        self._close_pipe(job)
        job.unsent.clear()
        job.closing = True
        self._feed(job)
        if job.ears >= 0:
            self._selector.unregister(job.ears)
            os.close(job.ears)
            os.unlink(f"{self._folder}/{job.key}.in")
        inside, ran = (0, True) if job.status is None else heard(job.status)
        left = self._sweep(job, inside or job.inside)
        # Reaped only now: until then no other process can get its number, and with it our signals.
        job.process.wait()
        took = round(time.monotonic() - job.began, 3)
        unboxed = {} if ran or (job.code or 0) < 0 else {"unboxed": True}
        job.journal.end(exit=job.code, why=job.why, seconds=took, left=left, **unboxed)
        self._tell(job.key, "ended")
        self._prepare(job.order)

    def _close_pipe(self, job: Job) -> None:
        if job.pipe is not None and job.process.stdout:
            self._selector.unregister(job.process.stdout)
            job.process.stdout.close()
            job.pipe = None

    # The family of a command

    def _kill(self, job: Job, number: int) -> None:
        kin = (freeze if job.why == "processes" else family)(job.process.pid, job.key)
        # The end of bubblewrap is the end of all inside, at once: what may end by itself is asked alone.
        whole = job.status is None or number == signal.SIGKILL
        if whole:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(job.process.pid, number)
        for pid in kin if whole else [pid for pid in kin if pid != job.process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _sweep(self, job: Job, inside: int) -> bool:
        """Ends what the command left running; each pass may orphan others, which then become visible here.

        The first process `inside` of a sandbox is gone only when all others in there are. Where there are none it is
        not waited for: the kernel takes its time to clear the sandbox away.
        """
        found = not inside and bool(family(job.process.pid, job.key))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(job.process.pid, signal.SIGKILL)
        for _ in range(100):
            left = [pid for pid in adopted() if (children(pid) if pid == inside else marked(pid, job.key))]
            if not left:
                break
            found = found or left != [inside]
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        return found

    def _tell(self, key: str, what: str) -> None:
        if self._parent:
            with contextlib.suppress(OSError):
                self._parent.send(f"{key} {what}\n".encode(), socket.MSG_DONTWAIT)


def _wake(_number: int, _frame: object) -> None:
    """Nothing to do but to be there: the signal has woken the loop."""


def main() -> None:
    # Nobody's child: the parent need not wait for it, nor it for the parent.
    if os.fork():
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        # A handler and not SIG_IGN: that would be handed down to the commands.
        signal.signal(number, _wake)
    adopt_orphans()
    parent = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    with contextlib.suppress(OSError):
        parent.sendall(b"- ready\n")
    Runner(parent, sys.argv[1]).run()


if __name__ == "__main__":
    main()
