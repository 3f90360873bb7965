"""One kill: play, die, recover, look."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.engine.log import Log
from sylph.prove.actor import act
from sylph.prove.invariants import Look, check
from sylph.prove.outside import Sink
from sylph.prove.place import Place, Setting
from sylph.prove.scenarios import SCENARIOS

HANG = 30.0
CALLED = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)
# What the store is written with, then what any other file is. Each is a kind: strace counts each for itself.
CALLS = ("pwrite64", "fdatasync", "write", "fsync", "rename", "unlink", "mkdir")


class Case(msgspec.Struct, frozen=True):
    """A boundary: the `at`-th of its kind in a scenario. `again` is where the recovery is killed too, if anywhere."""

    scenario: str
    kind: str
    at: int
    again: int = 0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.scenario}:{self.kind}:{self.at}"


class Outcome(msgspec.Struct, frozen=True):
    """What came of it. A boundary that was not reached was not tried."""

    case: Case
    reached: bool
    unknown: int = 0
    problems: tuple[str, ...] = ()
    scratch: str = ""


class Bench(Struct, frozen=True):
    """Where trials take place."""

    root: Path
    path: str

    def trial(self, case: Case) -> Outcome:
        """Kills at the boundary of `case`, recovers, and checks. The scratch folder stays where something is wrong."""
        place = Place(self.root / case.name.replace(":", "-"))
        sink = Sink()
        try:
            killed = self._die(case, place, sink)
            problems, unknown = self._recover(case, place, sink) if killed else ([], 0)
        finally:
            sink.close()
        if problems:
            return Outcome(case, killed, unknown, tuple(problems), str(place.root))
        shutil.rmtree(place.root, ignore_errors=True)
        return Outcome(case, killed, unknown)

    def rehearse(self, scenario: str) -> tuple[dict[str, int], list[str]]:
        """How many boundaries of each kind there are, and what is wrong without any kill."""
        place, sink = Place(self.root / f"{scenario}-rehearsal"), Sink()
        try:
            self._run(place, self._setting(scenario, sink), sink)
            log = Log.open(place.store)
            problems, _ = check(Look(SCENARIOS[scenario], place, sink, log, may_be_unknown=False))
            log.close()
            counts = msgspec.json.decode(place.counts.read_bytes(), type=dict[str, int]) if not problems else {}
        finally:
            sink.close()
        crossed = place.root / "crossed"
        runner = crossed.stat().st_size if crossed.exists() else 0
        counts |= {"runner": runner, "orphan": runner, "sink": sink.crossed}
        if not problems:
            shutil.rmtree(place.root, ignore_errors=True)
        return counts, problems

    def calls(self, scenario: str) -> dict[str, int]:
        """How many system calls of each kind one thread makes at the most."""
        place, sink = Place(self.root / f"{scenario}-calls"), Sink()
        try:
            self._prepare(place, self._setting(scenario, sink, CALLS[0]))
            trace = place.root / "trace"
            self._traced(place, sink, ["-e", f"trace={','.join(CALLS)}", "-o", str(trace)])
            made = Counter(CALLED.findall(trace.read_text()))
        finally:
            sink.close()
        shutil.rmtree(place.root, ignore_errors=True)
        return {kind: max((count for (_, call), count in made.items() if call == kind), default=0) for kind in CALLS}

    def _setting(self, scenario: str, sink: Sink, kind: str = "", at: int = 0) -> Setting:
        return Setting(scenario=scenario, port=sink.port, path=self.path, kind=kind, at=at)

    def _prepare(self, place: Place, setting: Setting) -> None:
        place.make(setting)
        if setting.kind in CALLS:
            # So that all its writes are those of one thread.
            Log.open(place.store).close()

    def _die(self, case: Case, place: Place, sink: Sink) -> bool:
        """Whether it was killed, and not at its end before that."""
        kind = "commit" if case.again else case.kind
        setting = self._setting(case.scenario, sink, kind, case.at)
        self._prepare(place, setting)
        if case.kind in CALLS:
            kill = f"inject={case.kind}:signal=KILL:when={case.at}"
            return self._traced(place, sink, ["-e", f"trace={case.kind}", "-e", kill, "-o", os.devnull])
        sink.kill_at = case.at if case.kind == "sink" else 0
        status = self._run(place, setting, sink, seconds=case.seconds)
        sink.kill_at = 0
        if case.kind == "runner":
            crossed = place.root / "crossed"
            return crossed.exists() and crossed.stat().st_size >= case.at
        return status == -signal.SIGKILL

    def _recover(self, case: Case, place: Place, sink: Sink) -> tuple[list[str], int]:
        setting = msgspec.structs.replace(self._setting(case.scenario, sink, "none"), recovering=True)
        status = 0
        if case.again:
            again = msgspec.structs.replace(setting, kind="commit", at=case.again)
            self._run(place, again, sink)
        status = self._run(place, setting, sink)
        problems = [f"the recovery ended with {status}, see {place.errors}"] if status else []
        log = Log.open(place.store)
        try:
            found, unknown = check(Look(SCENARIOS[case.scenario], place, sink, log, case.kind == "runner"))
        finally:
            log.close()
        return problems + found, unknown

    def _run(self, place: Place, setting: Setting, sink: Sink, *, seconds: float = 0.0) -> int:
        """Plays in a process of its own until it ends or is killed; how it ended."""
        place.make(setting)
        pid = _forked(place, lambda: (sink.close(), act(place)))
        return _watched(pid, sink, seconds)

    def _traced(self, place: Place, sink: Sink, how: Sequence[str]) -> bool:
        """Whether it was killed under the eyes of strace, which does to itself what was done to the other."""
        program = [sys.executable, "-m", "sylph.prove.child", str(place.root)]
        with place.errors.open("ab") as errors:
            # The runner is let go when it is started: it is no part of the process under test.
            strace = ["strace", "-f", "-qq", "-b", "execve", *how, *program]
            process = subprocess.Popen(strace, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        status = _watched(process.pid, sink, 0.0)
        process.returncode = status
        return status == -signal.SIGKILL


def _forked(place: Place, work: Callable[[], object]) -> int:
    """A fresh process without the start of one: nothing of the engine has run in what it is a copy of."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        errors = os.open(place.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it ends here, and is told
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _watched(pid: int, sink: Sink, seconds: float) -> int:
    """Serves the sink until the process has ended, and kills it when its time is up."""
    sink.kill = lambda: os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    while True:
        sink.serve()
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - began
        if passed > (seconds or HANG):
            os.kill(pid, signal.SIGKILL)


def chance(seed: int, *what: object) -> random.Random:
    """The same luck each time for the same thing."""
    return random.Random(f"{seed}:{what}")
