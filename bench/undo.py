"""Checkpoints: a look at a workspace before a command, beside a bare walk that does nothing but `lstat`."""

import asyncio
import os
import time
from pathlib import Path
from statistics import median

from bench.measure import Row, home
from sylph.core.tool import CallAssessment
from sylph.engine.commands.runner_client import RunnerClient
from sylph.engine.undo.checkpoints import Checkpoints
from sylph.engine.undo.workspace_scan import CheckpointPolicy

COMMAND = CallAssessment("write", "caution", commands=("sh",))
BAR = 150.0


def rows() -> list[Row]:
    return [*asyncio.run(_rows(10_000, BAR)), *asyncio.run(_rows(100_000, None))]


async def _rows(files: int, bar: float | None) -> list[Row]:
    with home() as folder:
        work = folder / "work"
        _fill(work, files)
        floor = median(_walk(work) for _ in range(5))
        checkpoints = _fresh(folder)
        first = await _look(checkpoints, work, 0)
        warm = median([await _look(checkpoints, work, number) for number in range(1, 8)])
        changed: list[float] = []
        for number in range(8, 15):
            (work / "d0" / "f0").write_bytes(os.urandom(4000))
            changed.append(await _look(checkpoints, work, number))
        again = await _look(_fresh(folder), work, 15)
    name = f"checkpoint, {files:,} files"
    return [
        Row(name=name, figure=warm, unit="ms", floor=floor, bar=bar, note="floor: a walk with lstat"),
        Row(name="… after one change", figure=median(changed), unit="ms", floor=floor, bar=bar),
        Row(name="… the first of a new process", figure=again, unit="ms", floor=floor, bar=bar),
        Row(name="… the very first, which copies all", figure=first, unit="ms", floor=floor),
    ]


def _fresh(folder: Path) -> Checkpoints:
    return Checkpoints(folder / "undo", CheckpointPolicy(files=200_000), RunnerClient(folder / "runs"))


async def _look(checkpoints: Checkpoints, work: Path, number: int) -> float:
    began = time.perf_counter()
    await checkpoints.before_call("s", f"c{number}", str(work), COMMAND)
    took = time.perf_counter() - began
    checkpoints.release_call("s", f"c{number}")
    return took * 1000


def _fill(work: Path, files: int) -> None:
    """Files of 1 to 7 kB, twenty to a folder."""
    for number in range(files // 20):
        folder = work / f"d{number}"
        folder.mkdir(parents=True)
        for each in range(20):
            (folder / f"f{each}").write_bytes(os.urandom(1000 + each * 300))


def _walk(work: Path) -> float:
    began = time.perf_counter()
    stack = [str(work)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return (time.perf_counter() - began) * 1000
