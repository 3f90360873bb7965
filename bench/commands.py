"""A command under the journaled runner, beside a plain subprocess that is read to its end."""

import asyncio
import os
import time
from statistics import median

from bench.measure import Row, home
from sylph.core.run import Order
from sylph.engine.runs import CallRuns, Runner

ARGV = ("bash", "-c", "echo hello")
TIMES = 300


def rows() -> list[Row]:
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    with home() as folder:
        runner = Runner(folder / "runs")
        first = await _under(runner, 0)
        ours: list[float] = []
        plain: list[float] = []
        for number in range(1, TIMES):
            ours.append(await _under(runner, number))
            plain.append(await _plain())
        runner.close()
    added = median(ours) - median(plain)
    return [
        Row(name="a command under the runner", figure=median(ours), unit="ms", floor=median(plain)),
        Row(name="… added to a plain subprocess", figure=added, unit="ms", bar=3.0),
        Row(name="… the first one, with its start", figure=first, unit="ms", floor=median(plain)),
    ]


async def _under(runner: Runner, number: int) -> float:
    began = time.perf_counter()
    await CallRuns(runner, f"k{number}").run(Order(argv=ARGV, cwd="/", env=dict(os.environ)), lambda _: None)
    runner.forget(f"k{number}")
    return (time.perf_counter() - began) * 1000


async def _plain() -> float:
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *ARGV,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    await process.communicate()
    return (time.perf_counter() - began) * 1000
