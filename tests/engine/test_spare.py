"""A sandbox that was set up ahead is like one that is set up for its command, or it is not used."""

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
from tests.patience import PATIENCE, eventually

from sylph.core.command_run import CommandResult, CommandSpec
from sylph.core.permission.secret_names import SECRET_FILE_NAMES
from sylph.engine.commands import prewarmed_sandbox
from sylph.engine.commands.prewarmed_sandbox import PrewarmedSandbox, prewarm_sandbox
from sylph.engine.commands.processes import is_zombie
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient
from sylph.engine.sandbox import CommandRights, CommandSandbox, SandboxPolicy
from sylph.engine.sandbox.layer_probe import LayerProbe

LAYER = LayerProbe().wait_for_layer()
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
def sandbox(work: Path) -> CommandSandbox:
    terms = SandboxPolicy(
        home=work.parent / "person", path=os.environ["PATH"], guarded=(work.parent / "data",), hide=SECRET_FILE_NAMES
    )
    return CommandSandbox(terms, work.parent / "data")


@pytest.fixture
def rights(work: Path) -> CommandRights:
    return CommandRights(workspace=work, private=work.parent / "data" / "private", effect="write")


@pytest.fixture
async def runner(work: Path, sandbox: CommandSandbox) -> AsyncGenerator[RunnerClient]:
    runner = RunnerClient(work.parent / "data" / "runs", sandbox=sandbox)
    yield runner
    runner.close()


async def told(sandbox: CommandSandbox, rights: CommandRights, *argv: str, cwd: str = "") -> dict[str, Any]:
    """An order as the runner gets it."""
    order = await sandbox.confine_command(CommandSpec(argv=argv, cwd=cwd or str(rights.workspace), env=ENV), rights)
    assert order.box
    box = {"head": list(order.box.head), "holds": list(order.box.holds), "limits": order.box.limits}
    return {"key": f"k{next(NUMBERS)}", "argv": argv, "cwd": order.cwd, "env": dict(order.env), "box": box}


@pytest.fixture
async def ahead(sandbox: CommandSandbox, rights: CommandRights) -> AsyncGenerator[PrewarmedSandbox]:
    found = prewarm_sandbox(await told(sandbox, rights, "true"), time.monotonic())
    assert found
    # However busy the machine is, it is ready when the test begins.
    assert select.select([found.ready_fd], [], [], 20)[0]
    found.read_ready()
    yield found
    found.discard()
    found.process.wait()


def started(runner: RunnerClient, key: str) -> dict[str, Any]:
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
    return min(await eventually(lambda: list(alive(folder, prewarmed_sandbox.WAIT_SCRIPT)), "a spare sandbox"))


async def gone(folder: Path) -> None:
    await eventually(lambda: not list(alive(folder, prewarmed_sandbox.WAIT_SCRIPT)), "the end of the spare sandbox")


async def ran(runner: RunnerClient, rights: CommandRights, command: str, cwd: str = "") -> CommandResult:
    order = CommandSpec(argv=("/bin/sh", "-c", command), cwd=cwd or str(rights.workspace), env=ENV)
    found = await JournaledCommands(runner, f"k{next(NUMBERS)}", rights).run(order, lambda _: None)
    assert isinstance(found, CommandResult)
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
async def test_a_command_cannot_tell_the_difference(
    runner: RunnerClient, rights: CommandRights, work: Path, command: str
) -> None:
    anew = await ran(runner, rights, command)
    waiting = await ready(work.parent)
    again = await ran(runner, rights, command)
    assert (again.exit, again.head, again.unboxed) == (anew.exit, anew.head, anew.unboxed)
    newest = max(runner.folder.glob("k*.run"), key=lambda path: path.stat().st_mtime_ns).stem
    assert started(runner, newest)["pid"] == waiting


async def test_an_order_for_another_view_gets_its_own(runner: RunnerClient, rights: CommandRights, work: Path) -> None:
    await ran(runner, rights, "true")
    await ready(work.parent)
    assert (await ran(runner, rights, "pwd", cwd="/usr")).head == b"/usr\n"
    looks = CommandRights(workspace=work, private=rights.private, effect="read")
    assert (await ran(runner, looks, "touch x")).exit
    assert not (work / "x").exists()


async def test_a_secret_that_appears_meanwhile_is_hidden(
    runner: RunnerClient, rights: CommandRights, work: Path
) -> None:
    await ran(runner, rights, "true")
    await ready(work.parent)
    (work / ".env.local").write_text("TOKEN=hush")
    (work / ".env").unlink()
    (work / ".env").write_text("TOKEN=hush")
    assert b"hush" not in (await ran(runner, rights, "cat .env .env.local")).head


async def test_one_whose_mounts_have_moved_is_not_used(
    sandbox: CommandSandbox, rights: CommandRights, work: Path, ahead: PrewarmedSandbox
) -> None:
    order = await told(sandbox, rights, "cat", ".env")
    assert ahead.fits_request(order)
    (work / ".env").replace(work / "kept")
    (work / ".env").write_text("TOKEN=new")
    assert not ahead.fits_request(order)


async def test_one_that_was_killed_is_not_used(runner: RunnerClient, rights: CommandRights, work: Path) -> None:
    await ran(runner, rights, "true")
    waiting = await ready(work.parent)
    os.kill(waiting, signal.SIGKILL)
    await eventually(lambda: is_zombie(waiting), "its death")
    assert (await ran(runner, rights, "echo here")).head == b"here\n"


async def test_half_a_script_is_no_command(
    sandbox: CommandSandbox, rights: CommandRights, work: Path, ahead: PrewarmedSandbox
) -> None:
    order = await told(sandbox, rights, "touch", "x")
    assert ahead.fits_request(order)
    assert ahead.process.stdin
    ahead.process.stdin.write(prewarmed_sandbox.build_script(order)[:-3])
    ahead.process.stdin.close()
    ahead.process.stdin = None
    assert ahead.process.wait(PATIENCE)
    assert not (work / "x").exists()


@pytest.mark.parametrize(
    "change",
    [{"env": {"A-B": "1"}}, {"env": {"SHELLOPTS": "x"}}, {"stdin": ""}, {"interactive": True}, {"job": True},
     {"argv": ["echo", "x" * 70_000]}],
)  # fmt: skip
async def test_what_cannot_be_told_to_a_shell_is_not(
    sandbox: CommandSandbox, rights: CommandRights, change: dict[str, Any]
) -> None:
    order = await told(sandbox, rights, "true")
    assert prewarmed_sandbox.is_prewarmable(order)
    assert not prewarmed_sandbox.is_prewarmable({**order, **change})


async def test_none_is_left_when_the_runner_ends(runner: RunnerClient, rights: CommandRights, work: Path) -> None:
    await ran(runner, rights, "true")
    await ready(work.parent)
    runner.close()
    await gone(work.parent)
