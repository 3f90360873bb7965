"""The search tools over 100,000 files beside plain ripgrep, and a search through 100,000 facts."""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from statistics import median

from bench.measure import Row, home
from bench.store import fill
from sylph.core.archive import Wanted
from sylph.core.places import Places
from sylph.core.tool import Context, Result, Tool
from sylph.engine.archive import LogArchive
from sylph.engine.jobs import SessionJobs
from sylph.engine.log import Log
from sylph.engine.runs import CallRuns, Runner
from sylph.tools.ripgrep import COMMON, Ripgrep, located
from sylph.tools.search import Find, Grep, find, grep

FILES, TIMES = 100_000, 7
RARE, OFTEN = "needle_in_haystack", "value_7"


def rows() -> list[Row]:
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    program = located(os.environ)
    assert program, "ripgrep comes with the requirements"
    with home() as folder:
        _grow(folder / "tree")
        runner = Runner(folder / "runs")
        context = _context(folder / "tree", runner)
        searcher, places = Ripgrep(program), Places(home=folder)
        plain = [program, *COMMON]
        pairs: list[tuple[str, Tool, object, list[str]]] = [
            ("grep, 100,000 files, 10 matches", grep(searcher, places), Grep(pattern=RARE), ["-n", RARE, "."]),
            (
                "grep, 100,000 files, names only",
                grep(searcher, places),
                Grep(pattern=RARE, mode="files"),
                ["-l", RARE, "."],
            ),
            (
                "grep, 10,000 files match, count",
                grep(searcher, places),
                Grep(pattern=OFTEN, mode="count"),
                ["-c", OFTEN, "."],
            ),
            ("find, 100,000 files", find(searcher), Find(pattern="*_77.py"), ["--files"]),
        ]
        found = [await _beside(name, tool, args, context, [*plain, *more]) for name, tool, args, more in pairs]
        runner.close()
        log = Log.open(folder / "facts.db")
        await fill(log)
        log.close()
        archive = LogArchive(folder / "facts.db")
        took = await _median(lambda: archive.search(Wanted(words="nowhere to be found")))
        found.append(Row(name="history, 100,000 facts, no match", figure=took, unit="ms", bar=500.0))
    return found


async def _beside(name: str, tool: Tool, args: object, context: Context, plain: list[str]) -> Row:
    """The tool and the program in turn, so that both meet the same machine."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in count():
        began = time.perf_counter()
        result: Result = await tool.run(args, context)
        middle = time.perf_counter()
        _plainly(plain, context.workspace)
        ended = time.perf_counter()
        assert result.ok
        if number:  # the first warms the caches
            ours.append((middle - began) * 1000)
            theirs.append((ended - middle) * 1000)
        if number == TIMES:
            break
    return Row(name=name, figure=median(ours), unit="ms", floor=median(theirs), bar=1.5 * median(theirs))


def _plainly(command: list[str], cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, check=False)


async def _median(work: Callable[[], Awaitable[object]]) -> float:
    took: list[float] = []
    for _ in range(TIMES):
        began = time.perf_counter()
        await work()
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


def _grow(root: Path) -> None:
    """Folders of 100 small source files."""
    for number in range(FILES):
        folder, name = divmod(number, 100)
        path = root / f"d{folder % 10}" / f"e{folder}" / f"file_{name}.py"
        if not name:
            path.parent.mkdir(parents=True)
        body = f"value_{number % 10} = {number}\n" * 8 + "def work():\n    return value\n"
        path.write_text(body + (f"# {RARE}\n" if number % (FILES // 10) == 77 else ""))


def _context(workspace: Path, runner: Runner) -> Context:
    async def nothing(*_: object) -> None:
        return None

    async def nobody(*_: object) -> list[str]:
        return []

    return Context(
        session="s",
        call="c",
        workspace=workspace,
        seconds=60.0,
        output=lambda _: None,
        emit=nothing,
        ask=nobody,
        whole=nothing,
        runs=CallRuns(runner, "s.c"),
        jobs=SessionJobs(runner, "s"),
        private=workspace.parent / "private",
    )
