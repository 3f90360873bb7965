"""A command under the journaled runner, with and without the sandbox, beside a plain subprocess read to its end."""

import asyncio
import os
import time
from pathlib import Path
from statistics import median

from bench.measure import Row, home
from sylph.compose.engine import build_sandbox_policy
from sylph.config import load_config
from sylph.core.command_run import CommandSpec
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient
from sylph.engine.sandbox import CommandRights, CommandSandbox

ARGV = ("bash", "-c", "echo hello")
TIMES = 300


def rows() -> list[Row]:
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    with home() as folder:
        runner, boxed = RunnerClient(folder / "runs"), _sandboxed(folder)
        rights = CommandRights(workspace=folder, private=folder / "private", effect="write")
        first = await _under(runner, 0)
        # What there is to confine with is found out once, while the model still writes.
        await _under(boxed, 0, rights)
        ours: list[float] = []
        inside: list[float] = []
        anew: list[float] = []
        plain: list[float] = []
        for number in range(1, TIMES):
            ours.append(await _under(runner, number))
            inside.append(await _under(boxed, number, rights))
            if number % 4 == 0:
                # Another folder to run in is another sandbox: none is there yet that was set up ahead.
                anew.append(await _under(boxed, TIMES + number, rights, cwd="/usr"))
                await _under(boxed, 2 * TIMES + number, rights)
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


def _sandboxed(folder: Path) -> RunnerClient:
    config = load_config({**os.environ, "SYLPH_HOME": str(folder / "sylph")})
    return RunnerClient(folder / "boxed", sandbox=CommandSandbox(build_sandbox_policy(config), folder))


def _layer(runner: RunnerClient) -> str:
    return runner.sandbox.layer.said if runner.sandbox else ""


async def _under(runner: RunnerClient, number: int, rights: CommandRights | None = None, cwd: str = "/") -> float:
    began = time.perf_counter()
    await JournaledCommands(runner, f"k{number}", rights).run(
        CommandSpec(argv=ARGV, cwd=cwd, env=dict(os.environ)), lambda _: None
    )
    runner.remove_journal(f"k{number}")
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
