"""`sylph prove crash`: kills at every durable boundary, and sees whether anything was lost, done twice or invented."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import UserError
from sylph.features.prove.crash.trial import TRACED_SYSCALLS, CrashBench, CrashCase, CrashOutcome, seeded_random
from sylph.features.prove.scenario.scenarios import SCENARIOS

KINDS: dict[str, str] = {
    "commit": "before and after each commit of the store",
    "effect": "before and after each call, after its result is in the log, after its journal is gone",
    "file": "before each file is made, opened to write, renamed or removed, and before each process and connection",
    **{call: f"before each system call {call}, with strace" for call in TRACED_SYSCALLS},
    "orphan": "at each step of the runner, which lives on",
    "runner": "at each step of the runner, which dies; Sylph lives on",
    "sink": "when the world outside has done it and has not answered yet",
    "again": "at a commit, and the recovery at one of its own",
    "time": "at random moments",
}
TIMES = 16
SPAN = 0.15
FEW = 200


class CrashProofRow(msgspec.Struct):
    """What came of the kills of one kind in one scenario."""

    scenario: str
    kind: str
    tried: int = 0
    survived: int = 0
    unknown: int = 0
    violations: int = 0


class CrashProofReport(msgspec.Struct):
    seed: int
    tried: int
    survived: int
    unknown: int
    unreached: int
    left_out: int
    seconds: float
    rows: list[CrashProofRow]
    failures: list[CrashOutcome]
    strace: bool

    @property
    def ok(self) -> bool:
        return not self.failures and self.tried > 0


class CrashProofOptions(Struct, frozen=True, kw_only=True):
    """What is to be tried. Without a limit, everything."""

    points: int = 0
    seconds: float = 0.0
    seed: int = 1
    only: str = ""


CrashProgress = Callable[[int, int, int], None]
"""How many are done, of how many, and how many went wrong."""


def prove_crash(wish: CrashProofOptions, environ: Mapping[str, str], progress: CrashProgress) -> CrashProofReport:
    began = time.monotonic()
    path = environ.get("PATH", os.defpath)
    bench = CrashBench(Path(tempfile.mkdtemp(prefix="sylph-prove-")), path)
    strace = shutil.which("strace", path=path) is not None
    # Forked before anything of the engine runs: each trial begins as a copy of a process that has only read the code.
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork"), initializer=_ignore_sigint) as pool:
        try:
            cases = [_parse_case(wish)] if wish.only else _plan_cases(wish, bench, pool, strace=strace)
            outcomes = list(_run_cases(cases, bench, pool, wish, began, progress))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            shutil.rmtree(bench.root, ignore_errors=True)
            raise
    failures = [outcome for outcome in outcomes if outcome.problems]
    if not failures:
        shutil.rmtree(bench.root, ignore_errors=True)
    rows = _summarize_outcomes(outcomes)
    return CrashProofReport(
        seed=wish.seed,
        tried=sum(row.tried for row in rows),
        survived=sum(row.survived for row in rows),
        unknown=sum(row.unknown for row in rows),
        unreached=sum(not outcome.reached for outcome in outcomes),
        left_out=len(cases) - len(outcomes),
        seconds=time.monotonic() - began,
        rows=rows,
        failures=failures,
        strace=strace,
    )


def _ignore_sigint() -> None:
    """Ctrl-C is for whoever asked for the proof, not for each of its processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _plan_cases(
    wish: CrashProofOptions, bench: CrashBench, pool: ProcessPoolExecutor, *, strace: bool
) -> list[CrashCase]:
    """Every boundary there is, in the order in which they are tried: first a few of each kind, then the rest."""
    rehearsals = {name: pool.submit(bench.rehearse_scenario, name) for name in SCENARIOS}
    traced = {name: pool.submit(bench.count_syscalls, name) for name in _traced_scenarios(wish) if strace}
    groups: list[list[CrashCase]] = []
    for name, rehearsal in rehearsals.items():
        counts, problems = rehearsal.result()
        if problems:
            raise UserError(f"{name} does not even work without a kill: {'; '.join(problems)}.", kind="failed")
        counts |= traced[name].result() if name in traced else {}
        counts |= {"again": counts["commit"], "time": TIMES}
        groups += [[_build_case(wish.seed, name, kind, at) for at in range(1, counts[kind] + 1)] for kind in counts]
    for group in [*groups, groups]:
        seeded_random(wish.seed, len(group)).shuffle(group)
    cases = [case for row in zip_longest(*groups) for case in row if case]
    return cases[: wish.points] if wish.points else cases


def _traced_scenarios(wish: CrashProofOptions) -> list[str]:
    """Which scenarios are played under strace, which takes time to prepare: for a short proof, two of them."""
    names = list(SCENARIOS)
    seeded_random(wish.seed, "strace").shuffle(names)
    return names[:2] if 0 < wish.points < FEW else names


def _build_case(seed: int, scenario: str, kind: str, at: int) -> CrashCase:
    luck = seeded_random(seed, scenario, kind, at)
    again = luck.randint(1, 20) if kind == "again" else 0
    return CrashCase(scenario, kind, at, again=again, seconds=luck.uniform(0.001, SPAN) if kind == "time" else 0.0)


def _parse_case(wish: CrashProofOptions) -> CrashCase:
    scenario, _, rest = wish.only.partition(":")
    kind, _, at = rest.partition(":")
    if scenario not in SCENARIOS or kind not in KINDS or not at.isdigit() or not int(at):
        raise UserError(
            f"{wish.only!r} is not SCENARIO:KIND:N.",
            next=[f"scenarios: {', '.join(SCENARIOS)}", f"kinds: {', '.join(KINDS)}"],
        )
    return _build_case(wish.seed, scenario, kind, int(at))


def _run_cases(
    cases: Sequence[CrashCase],
    bench: CrashBench,
    pool: ProcessPoolExecutor,
    wish: CrashProofOptions,
    began: float,
    progress: CrashProgress,
) -> Iterator[CrashOutcome]:
    """Tries case after case, a few at once, until the time is up."""
    waiting, running = list(reversed(cases)), set[Future[CrashOutcome]]()
    done = wrong = 0
    while waiting or running:
        late = wish.seconds and time.monotonic() - began > wish.seconds
        while waiting and not late and len(running) < 2 * (os.cpu_count() or 1):
            running.add(pool.submit(bench.run_trial, waiting.pop()))
        if not running:
            return
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            outcome = future.result()
            done, wrong = done + 1, wrong + bool(outcome.problems)
            progress(done, len(cases), wrong)
            yield outcome


def _summarize_outcomes(outcomes: Sequence[CrashOutcome]) -> list[CrashProofRow]:
    rows: dict[tuple[str, str], CrashProofRow] = {}
    for outcome in outcomes:
        case = outcome.case
        row = rows.setdefault((case.scenario, case.kind), CrashProofRow(case.scenario, case.kind))
        row.tried += outcome.reached
        row.survived += outcome.reached and not outcome.problems
        row.unknown += outcome.unknown
        row.violations += bool(outcome.problems)
    order = [(scenario, kind) for scenario in SCENARIOS for kind in KINDS]
    return [rows[key] for key in order if key in rows]
