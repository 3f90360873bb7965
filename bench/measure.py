"""Running programs and measuring what they use."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable
SYLPH = str(Path(PYTHON).parent / "sylph")


class Used(NamedTuple):
    wall: float
    cpu: float
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `bar` is what it must stay under (or above, where `more` is better)."""

    name: str
    figure: float
    unit: str
    floor: float | None = None
    bar: float | None = None
    more: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        if self.bar is None:
            return True
        return self.figure >= self.bar if self.more else self.figure <= self.bar


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Used:
    """Runs a program to its end, alone. Peak memory is that of the program itself, its children not counted."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}: {out[-500:]!r} {err[-500:]!r}")
    return Used(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def repeat(times: int, command: Sequence[str], **how: object) -> Used:
    """The median of several runs, after one that warms the caches."""
    run(command, **how)  # pyright: ignore[reportArgumentType]
    runs = [run(command, **how) for _ in range(times)]  # pyright: ignore[reportArgumentType]
    return Used(*(median(column) for column in zip(*runs, strict=True)))


@contextlib.contextmanager
def home() -> Generator[Path]:
    """A fresh folder on the disk the project is on: a memory file system would flatter every figure."""
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def server(script: object) -> Generator[str]:
    """The scripted model server as a process of its own; yields its base URL."""
    with home() as folder:
        path = folder / "script.json"
        path.write_text(json.dumps(script))
        process = subprocess.Popen(
            [PYTHON, str(ROOT / "tests" / "model_server"), "--script", str(path), "--loop"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.kill()
            process.communicate()


def environment(folder: Path, url: str = "") -> dict[str, str]:
    """What Sylph needs to find a home and a model; nothing of the user's own set-up."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**keep, "SYLPH_HOME": str(folder / "home"), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
