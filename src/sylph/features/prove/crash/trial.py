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

from sylph.engine.log.store import EventLog
from sylph.features.prove.crash.invariants import CrashEvidence, check_invariants
from sylph.features.prove.scenario.fake_service import FakeService
from sylph.features.prove.scenario.player import run_process
from sylph.features.prove.scenario.scenarios import SCENARIOS
from sylph.features.prove.scenario.scratch_folder import ScratchFolder, TrialSetting

HANG_SECONDS = 30.0
SYSCALL_PATTERN = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)
# What the store is written with, then what any other file is. Each is a kind: strace counts each for itself.
TRACED_SYSCALLS = ("pwrite64", "fdatasync", "write", "fsync", "rename", "unlink", "mkdir")


class CrashCase(msgspec.Struct, frozen=True):
    """A boundary: the `at`-th of its kind in a scenario. `again` is where the recovery is killed too, if anywhere."""

    scenario: str
    kind: str
    at: int
    again: int = 0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.scenario}:{self.kind}:{self.at}"


class CrashOutcome(msgspec.Struct, frozen=True):
    """What came of it. A boundary that was not reached was not tried."""

    case: CrashCase
    reached: bool
    unknown: int = 0
    problems: tuple[str, ...] = ()
    scratch: str = ""


class CrashBench(Struct, frozen=True):
    """Where trials take place."""

    root: Path
    path: str

    def run_trial(self, case: CrashCase) -> CrashOutcome:
        """Kills at the boundary of `case`, recovers, and checks. The scratch folder stays where something is wrong."""
        place = ScratchFolder(self.root / case.name.replace(":", "-"))
        sink = FakeService()
        try:
            killed = self._run_until_killed(case, place, sink)
            problems, unknown = self._recover_and_check(case, place, sink) if killed else ([], 0)
        finally:
            sink.close()
        if problems:
            return CrashOutcome(case, killed, unknown, tuple(problems), str(place.root))
        shutil.rmtree(place.root, ignore_errors=True)
        return CrashOutcome(case, killed, unknown)

    def rehearse_scenario(self, scenario: str) -> tuple[dict[str, int], list[str]]:
        """How many boundaries of each kind there are, and what is wrong without any kill."""
        place, sink = ScratchFolder(self.root / f"{scenario}-rehearsal"), FakeService()
        try:
            self._run_process(place, self._build_setting(scenario, sink), sink)
            log = EventLog.open(place.store)
            problems, _ = check_invariants(CrashEvidence(SCENARIOS[scenario], place, sink, log, may_be_unknown=False))
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

    def count_syscalls(self, scenario: str) -> dict[str, int]:
        """How many system calls of each kind one thread makes at the most."""
        place, sink = ScratchFolder(self.root / f"{scenario}-calls"), FakeService()
        try:
            self._prepare_scratch(place, self._build_setting(scenario, sink, TRACED_SYSCALLS[0]))
            trace = place.root / "trace"
            self._run_traced(place, sink, ["-e", f"trace={','.join(TRACED_SYSCALLS)}", "-o", str(trace)])
            made = Counter(SYSCALL_PATTERN.findall(trace.read_text()))
        finally:
            sink.close()
        shutil.rmtree(place.root, ignore_errors=True)
        return {
            kind: max((count for (_, call), count in made.items() if call == kind), default=0)
            for kind in TRACED_SYSCALLS
        }

    def _build_setting(self, scenario: str, sink: FakeService, kind: str = "", at: int = 0) -> TrialSetting:
        return TrialSetting(scenario=scenario, port=sink.port, path=self.path, kind=kind, at=at)

    def _prepare_scratch(self, place: ScratchFolder, setting: TrialSetting) -> None:
        place.prepare(setting)
        if setting.kind in TRACED_SYSCALLS:
            # So that all its writes are those of one thread.
            EventLog.open(place.store).close()

    def _run_until_killed(self, case: CrashCase, place: ScratchFolder, sink: FakeService) -> bool:
        """Whether it was killed, and not at its end before that."""
        kind = "commit" if case.again else case.kind
        setting = self._build_setting(case.scenario, sink, kind, case.at)
        self._prepare_scratch(place, setting)
        if case.kind in TRACED_SYSCALLS:
            kill = f"inject={case.kind}:signal=KILL:when={case.at}"
            return self._run_traced(place, sink, ["-e", f"trace={case.kind}", "-e", kill, "-o", os.devnull])
        sink.kill_at = case.at if case.kind == "sink" else 0
        status = self._run_process(place, setting, sink, seconds=case.seconds)
        sink.kill_at = 0
        if case.kind == "runner":
            crossed = place.root / "crossed"
            return crossed.exists() and crossed.stat().st_size >= case.at
        return status == -signal.SIGKILL

    def _recover_and_check(self, case: CrashCase, place: ScratchFolder, sink: FakeService) -> tuple[list[str], int]:
        setting = msgspec.structs.replace(self._build_setting(case.scenario, sink, "none"), recovering=True)
        status = 0
        if case.again:
            again = msgspec.structs.replace(setting, kind="commit", at=case.again)
            self._run_process(place, again, sink)
        status = self._run_process(place, setting, sink)
        problems = [f"the recovery ended with {status}, see {place.errors}"] if status else []
        log = EventLog.open(place.store)
        try:
            found, unknown = check_invariants(
                CrashEvidence(SCENARIOS[case.scenario], place, sink, log, case.kind == "runner")
            )
        finally:
            log.close()
        return problems + found, unknown

    def _run_process(
        self, place: ScratchFolder, setting: TrialSetting, sink: FakeService, *, seconds: float = 0.0
    ) -> int:
        """Plays in a process of its own until it ends or is killed; how it ended."""
        place.prepare(setting)
        pid = _fork_process(place, lambda: (sink.close(), run_process(place)))
        return _wait_for_process(pid, sink, seconds)

    def _run_traced(self, place: ScratchFolder, sink: FakeService, how: Sequence[str]) -> bool:
        """Whether it was killed under the eyes of strace, which does to itself what was done to the other."""
        program = [sys.executable, "-m", "sylph.features.prove.crash.child_process", str(place.root)]
        with place.errors.open("ab") as errors:
            # The runner is let go when it is started: it is no part of the process under test.
            strace = ["strace", "-f", "-qq", "-b", "execve", *how, *program]
            process = subprocess.Popen(strace, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        status = _wait_for_process(process.pid, sink, 0.0)
        process.returncode = status
        return status == -signal.SIGKILL


def _fork_process(place: ScratchFolder, work: Callable[[], object]) -> int:
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


def _wait_for_process(pid: int, sink: FakeService, seconds: float) -> int:
    """Serves the sink until the process has ended, and kills it when its time is up."""
    sink.kill = lambda: os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    while True:
        sink.serve_request()
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - began
        if passed > (seconds or HANG_SECONDS):
            os.kill(pid, signal.SIGKILL)


def seeded_random(seed: int, *what: object) -> random.Random:
    """The same luck each time for the same thing."""
    return random.Random(f"{seed}:{what}")
