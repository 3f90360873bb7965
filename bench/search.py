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
from sylph.core.history_search import HistoryQuery
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.tool import Tool, ToolContext, ToolResult
from sylph.engine.commands.jobs import SessionJobs
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient
from sylph.engine.log.search import LogSearch
from sylph.engine.log.store import EventLog
from sylph.tools.search.find_grep import FindArgs, GrepArgs, build_find_tool, build_grep_tool
from sylph.tools.search.ripgrep import COMMON, RipgrepSearcher, find_ripgrep

FILES, TIMES = 100_000, 7
RARE, OFTEN = "needle_in_haystack", "value_7"


def rows() -> list[Row]:
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    program = find_ripgrep(os.environ)
    assert program, "ripgrep comes with the requirements"
    with home() as folder:
        _grow(folder / "tree")
        runner = RunnerClient(folder / "runs")
        context = _context(folder / "tree", runner)
        searcher, places = RipgrepSearcher(program), PathPolicy(home=folder)
        plain = [program, *COMMON]
        pairs: list[tuple[str, Tool, object, list[str]]] = [
            (
                "grep, 100,000 files, 10 matches",
                build_grep_tool(searcher, places),
                GrepArgs(pattern=RARE),
                ["-n", RARE, "."],
            ),
            (
                "grep, 100,000 files, names only",
                build_grep_tool(searcher, places),
                GrepArgs(pattern=RARE, mode="files"),
                ["-l", RARE, "."],
            ),
            (
                "grep, 10,000 files match, count",
                build_grep_tool(searcher, places),
                GrepArgs(pattern=OFTEN, mode="count"),
                ["-c", OFTEN, "."],
            ),
            ("find, 100,000 files", build_find_tool(searcher), FindArgs(pattern="*_77.py"), ["--files"]),
        ]
        found = [await _beside(name, tool, args, context, [*plain, *more]) for name, tool, args, more in pairs]
        runner.close()
        log = EventLog.open(folder / "facts.db")
        await fill(log)
        log.close()
        archive = LogSearch(folder / "facts.db")
        took = await _median(lambda: archive.search(HistoryQuery(words="nowhere to be found")))
        found.append(Row(name="history, 100,000 facts, no match", figure=took, unit="ms", bar=500.0))
    return found


async def _beside(name: str, tool: Tool, args: object, context: ToolContext, plain: list[str]) -> Row:
    """The tool and the program in turn, so that both meet the same machine."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in count():
        began = time.perf_counter()
        result: ToolResult = await tool.run(args, context)
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


def _context(workspace: Path, runner: RunnerClient) -> ToolContext:
    async def nothing(*_: object) -> None:
        return None

    async def nobody(*_: object) -> list[str]:
        return []

    return ToolContext(
        session="s",
        call="c",
        workspace=workspace,
        seconds=60.0,
        output=lambda _: None,
        emit=nothing,
        ask=nobody,
        full_output=nothing,
        runner=JournaledCommands(runner, "s.c"),
        jobs=SessionJobs(runner, "s"),
        private=workspace.parent / "private",
    )
