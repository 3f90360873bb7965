"""A sandbox that was set up ahead is like one that is set up for its command, or it is not used."""

import asyncio
import os
import select
import signal
import time
from collections.abc import AsyncGenerator, Generator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sylph.core.run import Order, Ran
from sylph.core.secret import HIDE
from sylph.engine import spare
from sylph.engine.processes import is_zombie
from sylph.engine.runs import CallRuns, Runner
from sylph.engine.sandbox import Grip, Sandbox, Terms
from sylph.engine.sandbox.layers import Trial
from sylph.engine.spare import Spare, prepared

LAYER = Trial().layer()
pytestmark = pytest.mark.skipif(LAYER.name != "bwrap", reason=f"no bubblewrap here: {LAYER.said}")
NUMBERS = count(1)
ENV = {"PATH": "/usr/bin:/bin", "ODD": "a'b\n$HOME `x` \\ \"", "PWD": "/nowhere", "LANG": "C.UTF-8"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("person/.ssh", "work", "data/private"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / ".env").write_text("TOKEN=hush")
    return tmp_path.resolve() / "work"


@pytest.fixture
def sandbox(work: Path) -> Sandbox:
    terms = Terms(home=work.parent / "person", path=os.environ["PATH"], guarded=(work.parent / "data",), hide=HIDE)
    return Sandbox(terms, work.parent / "data")


@pytest.fixture
def grip(work: Path) -> Grip:
    return Grip(workspace=work, private=work.parent / "data" / "private", effect="write")


@pytest.fixture
async def runner(work: Path, sandbox: Sandbox) -> AsyncGenerator[Runner]:
    runner = Runner(work.parent / "data" / "runs", sandbox=sandbox)
    yield runner
    runner.close()


async def told(sandbox: Sandbox, grip: Grip, *argv: str, cwd: str = "") -> dict[str, Any]:
    """An order as the runner gets it."""
    order = await sandbox.confine(Order(argv=argv, cwd=cwd or str(grip.workspace), env=ENV), grip)
    assert order.box
    box = {"head": list(order.box.head), "holds": list(order.box.holds), "limits": order.box.limits}
    return {"key": f"k{next(NUMBERS)}", "argv": argv, "cwd": order.cwd, "env": dict(order.env), "box": box}


@pytest.fixture
async def ahead(sandbox: Sandbox, grip: Grip) -> AsyncGenerator[Spare]:
    found = prepared(await told(sandbox, grip, "true"), time.monotonic())
    assert found
    # However busy the machine is, it is ready when the test begins.
    assert select.select([found.heard], [], [], 20)[0]
    found.hear()
    yield found
    found.drop()
    found.process.wait()


def started(runner: Runner, key: str) -> dict[str, Any]:
    lines = (runner.folder / f"{key}.run").read_text().splitlines()
    return next(line["started"] for line in map(msgspec.json.decode, lines) if "started" in line)


def alive(folder: Path, doing: str = "") -> Generator[int]:
    """Processes that have something of this folder, and that, in their command line."""
    for each in Path("/proc").iterdir():
        try:
            line = (each / "cmdline").read_bytes() if each.name.isdigit() else b""
            if str(folder).encode() in line and doing.encode() in line:
                yield int(each.name)
        except OSError:
            continue


async def ready(folder: Path) -> int:
    """The sandbox that waits for the next command."""
    for _ in range(200):
        if found := list(alive(folder, spare.WAIT)):
            return min(found)
        await asyncio.sleep(0.02)
    raise AssertionError("none was set up")


async def gone(folder: Path) -> None:
    for _ in range(500):
        if not list(alive(folder, spare.WAIT)):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(list(alive(folder)))


async def ran(runner: Runner, grip: Grip, command: str, cwd: str = "") -> Ran:
    order = Order(argv=("/bin/sh", "-c", command), cwd=cwd or str(grip.workspace), env=ENV)
    found = await CallRuns(runner, f"k{next(NUMBERS)}", grip).run(order, lambda _: None)
    assert isinstance(found, Ran)
    return found


@pytest.mark.parametrize(
    "command",
    [
        "env | grep -v SYLPH_RUN | sort",
        "ls -l /proc/self/fd | wc -l; readlink /proc/self/fd/0",
        "cat; pwd; echo $0; ulimit -a",
        "echo out; echo err >&2; exit 3",
        "cat .env; no-such-program; kill -9 $$",
        "cat /proc/self/mountinfo | cut -d' ' -f 5-6; cat /proc/self/status | grep -E 'Seccomp|Cap|NoNewPrivs'",
    ],
)
async def test_a_command_cannot_tell_the_difference(runner: Runner, grip: Grip, work: Path, command: str) -> None:
    anew = await ran(runner, grip, command)
    waiting = await ready(work.parent)
    again = await ran(runner, grip, command)
    assert (again.exit, again.head, again.unboxed) == (anew.exit, anew.head, anew.unboxed)
    newest = max(runner.folder.glob("k*.run"), key=lambda path: path.stat().st_mtime_ns).stem
    assert started(runner, newest)["pid"] == waiting


async def test_an_order_for_another_view_gets_its_own(runner: Runner, grip: Grip, work: Path) -> None:
    await ran(runner, grip, "true")
    await ready(work.parent)
    assert (await ran(runner, grip, "pwd", cwd="/usr")).head == b"/usr\n"
    looks = Grip(workspace=work, private=grip.private, effect="read")
    assert (await ran(runner, looks, "touch x")).exit
    assert not (work / "x").exists()


async def test_a_secret_that_appears_meanwhile_is_hidden(runner: Runner, grip: Grip, work: Path) -> None:
    await ran(runner, grip, "true")
    await ready(work.parent)
    (work / ".env.local").write_text("TOKEN=hush")
    (work / ".env").unlink()
    (work / ".env").write_text("TOKEN=hush")
    assert b"hush" not in (await ran(runner, grip, "cat .env .env.local")).head


async def test_one_whose_mounts_have_moved_is_not_used(sandbox: Sandbox, grip: Grip, work: Path, ahead: Spare) -> None:
    order = await told(sandbox, grip, "cat", ".env")
    assert ahead.fits(order)
    (work / ".env").replace(work / "kept")
    (work / ".env").write_text("TOKEN=new")
    assert not ahead.fits(order)


async def test_one_that_was_killed_is_not_used(runner: Runner, grip: Grip, work: Path) -> None:
    await ran(runner, grip, "true")
    waiting = await ready(work.parent)
    os.kill(waiting, signal.SIGKILL)
    while not is_zombie(waiting):  # noqa: ASYNC110 - a process of another process
        await asyncio.sleep(0.01)
    assert (await ran(runner, grip, "echo here")).head == b"here\n"


async def test_half_a_script_is_no_command(sandbox: Sandbox, grip: Grip, work: Path, ahead: Spare) -> None:
    order = await told(sandbox, grip, "touch", "x")
    assert ahead.fits(order)
    assert ahead.process.stdin
    ahead.process.stdin.write(spare.script(order)[:-3])
    ahead.process.stdin.close()
    ahead.process.stdin = None
    assert ahead.process.wait(5)
    assert not (work / "x").exists()


@pytest.mark.parametrize(
    "change",
    [{"env": {"A-B": "1"}}, {"env": {"SHELLOPTS": "x"}}, {"stdin": ""}, {"interactive": True}, {"job": True},
     {"argv": ["echo", "x" * 70_000]}],
)  # fmt: skip
async def test_what_cannot_be_told_to_a_shell_is_not(sandbox: Sandbox, grip: Grip, change: dict[str, Any]) -> None:
    order = await told(sandbox, grip, "true")
    assert spare.usable(order)
    assert not spare.usable({**order, **change})


async def test_none_is_left_when_the_runner_ends(runner: Runner, grip: Grip, work: Path) -> None:
    await ran(runner, grip, "true")
    await ready(work.parent)
    runner.close()
    await gone(work.parent)
