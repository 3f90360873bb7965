"""Commands outlive whoever ordered them, and how they ended can always be told, or it is said that it cannot."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.patience import eventually

from sylph.core.command_run import CommandResult, CommandSpec, LostCommand
from sylph.engine.commands.journal_reader import process_alive, read_journal
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient

# Another one for each process that tests: commands are found by it, whoever started them.
KEY = f"k{os.getpid()}"
# Seconds by which a command of these tests is told from those of others on this machine.
LONG = f"77.{os.getpid():07}"

HUNGRY = "import time; x = bytearray(300_000_000); time.sleep(300)"
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncGenerator[RunnerClient]:
    runner = RunnerClient(tmp_path / "runs")
    yield runner
    runner.close()


def order(command: str, **how: object) -> CommandSpec:
    return CommandSpec(argv=("bash", "-c", command), cwd="/", env=ENV, **how)  # pyright: ignore[reportArgumentType]


async def run(runner: RunnerClient, command: str, key: str = KEY, **how: object) -> CommandResult:
    ran = await JournaledCommands(runner, key).run(order(command, **how), lambda _: None)
    assert isinstance(ran, CommandResult)
    return ran


def processes(command: bytes) -> list[str]:
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if command in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def pid_of(runner: RunnerClient, key: str = KEY) -> int:
    started = read_journal(runner.folder / f"{key}.run").started
    return started.pid if started else 0


def runner_pid(runner: RunnerClient, key: str = KEY) -> int:
    intent = read_journal(runner.folder / f"{key}.run").intent
    assert intent
    return intent.runner


async def test_output_and_exit_code_come_back(runner: RunnerClient) -> None:
    ran = await run(runner, "echo out; echo err >&2; exit 3")
    assert (ran.exit, ran.head, ran.why, ran.failed) == (3, b"out\nerr\n", "", 0)


async def test_output_is_passed_on_while_it_comes(runner: RunnerClient) -> None:
    seen: list[bytes] = []
    task = asyncio.create_task(JournaledCommands(runner, KEY).run(order("echo one; sleep 300"), seen.append))
    await eventually(lambda: b"".join(seen) == b"one\n")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_runner_serves_many_commands_at_once(runner: RunnerClient) -> None:
    ran = await asyncio.gather(*(run(runner, f"echo {number}", key=f"k{number}") for number in range(20)))
    assert [each.head for each in ran] == [f"{number}\n".encode() for number in range(20)]
    assert len({runner_pid(runner, f"k{number}") for number in range(20)}) == 1


async def test_a_command_that_takes_too_long_or_too_much_is_ended(runner: RunnerClient) -> None:
    late = await run(runner, "sleep 300", seconds=0.2)
    hungry = await run(runner, f"{sys.executable} -c '{HUNGRY}'", "m", memory=10**8)
    assert (late.why, hungry.why) == ("time", "memory")


async def test_of_endless_output_the_first_and_the_last_is_kept(runner: RunnerClient) -> None:
    ran = await run(runner, "echo first; head -c 100000 /dev/zero; echo last", head=1000, tail=500)
    assert ran.head.startswith(b"first\n")
    assert ran.tail.endswith(b"last\n")
    assert (len(ran.head), len(ran.tail), ran.dropped) == (1000, 500, 100_011 - 1500)


async def test_what_cannot_be_started_says_why(runner: RunnerClient) -> None:
    ran = await JournaledCommands(runner, KEY).run(CommandSpec(argv=("/no/such/program",), cwd="/"), lambda _: None)
    assert isinstance(ran, CommandResult)
    assert os.strerror(ran.failed) == "No such file or directory"


async def test_nothing_is_left_running(runner: RunnerClient) -> None:
    ran = await run(runner, f"(setsid sleep {LONG} &); sleep {LONG} & disown; echo $$")
    assert ran.left
    assert not processes(f"sleep\0{LONG}".encode())


ORPHAN = """
import asyncio, sys
from pathlib import Path
from sylph.core.command_run import CommandSpec
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient

async def main():
    runner = RunnerClient(Path(sys.argv[1]))
    order = CommandSpec(argv=("bash", "-c", sys.argv[2]), cwd="/", env={{"PATH": {path!r}}})
    await JournaledCommands(runner, {key!r}).run(order, lambda data: print(data.decode(), flush=True))

asyncio.run(main())
"""


def abandon(folder: Path, command: str) -> None:
    """A process that orders a command and is killed when the first output comes."""
    script = textwrap.dedent(ORPHAN.format(path=os.environ["PATH"], key=KEY))
    process = subprocess.Popen([sys.executable, "-c", script, str(folder), command], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()


async def test_a_command_outlives_its_parent_and_is_followed_again(runner: RunnerClient) -> None:
    abandon(runner.folder, "echo begun; sleep 0.5; echo done; exit 5")
    seen: list[bytes] = []
    ran = await JournaledCommands(runner, KEY).attach(seen.append)
    assert isinstance(ran, CommandResult)
    assert (ran.exit, ran.head, b"".join(seen)) == (5, b"begun\ndone\n", b"begun\ndone\n")


async def test_a_command_that_ended_meanwhile_tells_its_true_end(runner: RunnerClient) -> None:
    abandon(runner.folder, "echo begun; sleep 0.1; exit 7")
    await eventually(lambda: read_journal(runner.folder / f"{KEY}.run").ended)
    ran = await JournaledCommands(runner, KEY).attach(lambda _: None)
    assert isinstance(ran, CommandResult)
    assert ran.exit == 7


async def test_the_runner_ends_when_nothing_is_left_to_do(runner: RunnerClient) -> None:
    abandon(runner.folder, "echo begun; sleep 0.2")
    pid = runner_pid(runner)
    await eventually(lambda: not Path(f"/proc/{pid}").exists())


async def test_the_time_limit_holds_without_a_parent(runner: RunnerClient) -> None:
    task = asyncio.create_task(JournaledCommands(runner, KEY).run(order("sleep 300", seconds=0.5), lambda _: None))
    await eventually(lambda: pid_of(runner))
    runner.close()
    ran = await task
    assert isinstance(ran, CommandResult)
    assert ran.why == "time"


async def test_what_never_reached_the_runner_never_began(runner: RunnerClient) -> None:
    assert await JournaledCommands(runner, KEY).attach(lambda _: None) is None


async def test_with_the_runner_killed_the_end_is_not_known_and_nothing_runs_on(runner: RunnerClient) -> None:
    task = asyncio.create_task(JournaledCommands(runner, KEY).run(order("echo begun; sleep 300"), lambda _: None))
    await eventually(lambda: (runner.folder / f"{KEY}.out").exists() and (runner.folder / f"{KEY}.out").read_bytes())
    pid = pid_of(runner)
    os.kill(runner_pid(runner), signal.SIGKILL)
    lost = await task
    assert isinstance(lost, LostCommand)
    assert (lost.head, "runner died" in lost.evidence) == (b"begun\n", True)
    await eventually(lambda: not process_alive(pid, read_journal(runner.folder / f"{KEY}.run").started.start))  # pyright: ignore[reportOptionalMemberAccess]


async def test_after_a_killed_runner_there_is_a_new_one(runner: RunnerClient) -> None:
    await run(runner, "true")
    os.kill(runner_pid(runner), signal.SIGKILL)
    await eventually(lambda: not runner.alive)
    assert (await run(runner, "echo again", "next")).head == b"again\n"


async def test_a_journal_of_another_boot_is_a_lost_command(runner: RunnerClient) -> None:
    runner.folder.mkdir()
    intent = '{"intent": {"runner": 1, "runner_start": "1", "boot": "another"}}\n'
    (runner.folder / f"{KEY}.run").write_text(intent + '{"started": {"pid": 1, "start": "0"}}\n{"ended": {"ex')
    lost = await JournaledCommands(runner, KEY).attach(lambda _: None)
    assert isinstance(lost, LostCommand)
    assert "restarted" in lost.evidence


async def test_a_forgotten_command_leaves_no_files(runner: RunnerClient) -> None:
    await run(runner, "echo hi")
    runner.remove_journal(KEY)
    assert not list(runner.folder.iterdir())


async def test_an_order_that_was_taken_back_is_never_begun(runner: RunnerClient, tmp_path: Path) -> None:
    assert await JournaledCommands(runner, KEY).attach(lambda _: None) is None
    runner.start_command(KEY, order(f"echo late >> {tmp_path}/journal"))
    ran = await JournaledCommands(runner, KEY).run(order(f"echo again >> {tmp_path}/journal; exit 4"), lambda _: None)
    assert isinstance(ran, CommandResult)
    assert (ran.exit, (tmp_path / "journal").read_text()) == (4, "again\n")


async def test_a_begun_order_cannot_be_taken_back(runner: RunnerClient) -> None:
    await run(runner, "exit 3")
    assert not runner.revoke_command(KEY)
    found = await JournaledCommands(runner, KEY).attach(lambda _: None)
    assert isinstance(found, CommandResult)
    assert found.exit == 3


async def test_a_runner_that_died_unnoticed_is_replaced(runner: RunnerClient) -> None:
    await run(runner, "true")
    os.kill(runner_pid(runner), signal.SIGKILL)
    await asyncio.to_thread(time.sleep, 0.05)
    ran = await run(runner, "exit 6", "next")
    assert ran.exit == 6


async def test_what_a_killed_runner_had_started_and_not_written_down_is_ended(runner: RunnerClient) -> None:
    task = asyncio.create_task(JournaledCommands(runner, KEY).run(order(f"sleep {LONG}"), lambda _: None))
    await eventually(lambda: pid_of(runner))
    journal = runner.folder / f"{KEY}.run"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    os.kill(runner_pid(runner), signal.SIGKILL)
    assert isinstance(await task, LostCommand)
    await eventually(lambda: not processes(f"sleep\0{LONG}".encode()))


async def test_old_marks_of_orders_taken_back_are_swept(runner: RunnerClient) -> None:
    for key in ("old", "new"):
        assert runner.revoke_command(key)
    os.utime(runner.folder / "old.run", (1, 1))
    runner.ensure_started()
    assert [path.name for path in runner.folder.iterdir()] == ["new.run"]
