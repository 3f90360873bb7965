"""A command under the journaled runner, with and without the sandbox, beside a plain subprocess read to its end."""

import asyncio
import os
import time
from pathlib import Path
from statistics import median

from bench.measure import Row, home
from sylph.config import load
from sylph.core.run import Order
from sylph.engine.runs import CallRuns, Runner
from sylph.engine.sandbox import Grip, Sandbox
from sylph.wiring import terms_of

ARGV = ("bash", "-c", "echo hello")
TIMES = 300


def rows() -> list[Row]:
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    with home() as folder:
        runner, boxed = Runner(folder / "runs"), _sandboxed(folder)
        grip = Grip(workspace=folder, private=folder / "private", effect="write")
        first = await _under(runner, 0)
        # What there is to confine with is found out once, while the model still writes.
        await _under(boxed, 0, grip)
        ours: list[float] = []
        inside: list[float] = []
        anew: list[float] = []
        plain: list[float] = []
        for number in range(1, TIMES):
            ours.append(await _under(runner, number))
            inside.append(await _under(boxed, number, grip))
            if number % 4 == 0:
                # Another folder to run in is another sandbox: none is there yet that was set up ahead.
                anew.append(await _under(boxed, TIMES + number, grip, cwd="/usr"))
                await _under(boxed, 2 * TIMES + number, grip)
            plain.append(await _plain())
        runner.close()
        boxed.close()
    added = median(ours) - median(plain)
    return [
        Row(name="a command in the sandbox", figure=median(inside), unit="ms", floor=median(plain), note=_layer(boxed)),
        Row(name="… added to a plain subprocess", figure=median(inside) - median(plain), unit="ms", bar=10.0),
        Row(name="… in one that is set up anew", figure=median(anew), unit="ms", floor=median(plain)),
        Row(name="a command under the runner", figure=median(ours), unit="ms", floor=median(plain)),
        Row(name="… added to a plain subprocess", figure=added, unit="ms", bar=3.0),
        Row(name="… the first one, with its start", figure=first, unit="ms", floor=median(plain)),
    ]


def _sandboxed(folder: Path) -> Runner:
    config = load({**os.environ, "SYLPH_HOME": str(folder / "sylph")})
    return Runner(folder / "boxed", sandbox=Sandbox(terms_of(config), folder))


def _layer(runner: Runner) -> str:
    return runner.sandbox.layer.said if runner.sandbox else ""


async def _under(runner: Runner, number: int, grip: Grip | None = None, cwd: str = "/") -> float:
    began = time.perf_counter()
    await CallRuns(runner, f"k{number}", grip).run(Order(argv=ARGV, cwd=cwd, env=dict(os.environ)), lambda _: None)
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
