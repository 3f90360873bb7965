import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.patience import PATIENCE, eventually
from tests.tools.desk import PLACES, TOOLS, Desk, refused

from sylph.tools.shell import command
from sylph.tools.shell.process_tree import has_live_processes

# Writes its own process id, which is also its session's, then goes on.
SIGNED = "echo $$ > pid; "


def signed(desk: Desk) -> bool:
    path = desk.workspace / "pid"
    return path.exists() and path.read_text().endswith("\n")


def session(desk: Desk) -> int:
    return int((desk.workspace / "pid").read_text())


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_the_model_always_sees_the_exit_code(desk: Desk) -> None:
    good = await desk.use("shell", command="echo hi")
    assert (good.text, good.ok, good.exit) == ("hi\n[exit 0]", True, 0)
    bad = await desk.use("shell", command="printf oops >&2; exit 3")
    assert (bad.text, bad.ok, bad.exit) == ("oops\n[exit 3]", False, 3)


async def test_both_outputs_come_in_the_order_they_were_written(desk: Desk) -> None:
    result = await desk.use("shell", command="echo 1; echo 2 >&2; echo 3")
    assert result.text == "1\n2\n3\n[exit 0]"


async def test_a_death_by_signal_is_said(desk: Desk) -> None:
    result = await desk.use("shell", command="kill -9 $$")
    assert (result.text, result.exit) == ("[exit 137: killed by signal 9 (Killed)]", 137)


async def test_output_is_shown_while_the_command_runs(desk: Desk) -> None:
    call = asyncio.create_task(desk.use("shell", command="echo first; until [ -e go ]; do sleep 0.01; done; echo last"))
    await eventually(lambda: bool(desk.output))
    assert desk.output == ["first\n"]
    desk.write("go", "")
    assert (await call).text == "first\nlast\n[exit 0]"


async def test_a_character_split_between_two_writes_stays_whole(desk: Desk) -> None:
    result = await desk.use("shell", command=r"printf 'a\xc3'; sleep 0.1; printf '\xa4\xff'")
    assert result.text == "aä�\n[exit 0]"
    assert "".join(desk.output) == "aä�"


async def test_there_is_no_input_to_wait_for(desk: Desk) -> None:
    assert (await desk.use("shell", command="cat; read x; echo got $?")).text == "got 1\n[exit 0]"


async def test_a_command_runs_in_its_folder_with_its_variables(desk: Desk) -> None:
    desk.write("sub/x", "")
    result = await desk.use("shell", command='basename "$PWD"; echo $COLOUR', cwd="sub", env={"COLOUR": "blue"})
    assert result.text == "sub\nblue\n[exit 0]"
    for folder, kind in {"..": "outside_workspace", "sub/x": "not_a_directory", "none": "not_found"}.items():
        with refused(kind):
            await desk.use("shell", command="true", cwd=folder)


async def test_credentials_are_not_passed_on_and_nothing_prompts(desk: Desk) -> None:
    tool = command.build_shell_tool(
        {"PATH": os.defpath, "OPENAI_API_KEY": "k1", "db_password": "k2", "GH_TOKEN": "k3", "HOME": "/h"}, PLACES
    )
    told = (await desk.use(tool, command="env")).text.splitlines()
    assert not any("k1" in line or "k2" in line or "k3" in line for line in told)
    assert {"HOME=/h", "TERM=dumb", "PAGER=cat", "GIT_TERMINAL_PROMPT=0"} <= set(told)


async def test_without_bash_the_plain_shell_does(desk: Desk) -> None:
    assert (
        await desk.use(command.build_shell_tool({"PATH": "/nowhere"}, PLACES), command="echo hi")
    ).text == "hi\n[exit 0]"


@pytest.mark.parametrize("arguments", [{"command": "a\0b"}, {"command": "true", "env": {"A=B": "c"}}])
async def test_what_no_system_can_start_is_refused(desk: Desk, arguments: dict[str, object]) -> None:
    with refused("bad_command"):
        await desk.use("shell", **arguments)


async def test_too_long_a_command_is_refused(desk: Desk) -> None:
    with refused("too_large"):
        await desk.use("shell", command="#" * 3_000_000)


@pytest.mark.parametrize(
    "command",
    [
        "echo start; sleep 300",
        "yes",
        "trap '' TERM; echo start; while :; do sleep 1; done",
        "exec >&- 2>&-; sleep 300",
        "timeout 300 sleep 300",
        "set -m; sleep 300 & sleep 300 & wait",
    ],
    ids=["quiet", "chatty", "ignoring TERM", "silent", "in a group of its own", "with job control"],
)
async def test_the_time_out_is_wall_clock_and_takes_everything_along(desk: Desk, command: str) -> None:
    began = time.monotonic()
    result = await desk.use("shell", command=SIGNED + command, seconds=1.5)
    assert time.monotonic() - began < PATIENCE
    assert not result.ok
    assert result.trouble
    assert result.trouble.kind == "timed_out"
    assert "timed out after 1.5 s" in result.text.splitlines()[-1]
    assert not has_live_processes(session(desk))


async def test_what_was_printed_before_and_at_the_time_out_is_told(desk: Desk) -> None:
    command = "trap 'echo tidied; exit 5' TERM; echo working; sleep 300 & wait"
    result = await desk.use("shell", command=command, seconds=1.5)
    assert result.text.splitlines()[:2] == ["working", "tidied"]
    assert result.exit == 5


async def test_the_turn_s_own_limit_ends_a_command_in_time_to_tell(desk: Desk) -> None:
    desk.seconds = 0.2
    result = await desk.use("shell", command="sleep 300")
    assert "timed out after 0.2 s" in result.text
    assert result.trouble
    assert result.trouble.next == ("Do it in smaller parts.",)


async def test_a_child_that_keeps_the_output_open_does_not_hold_the_call(desk: Desk) -> None:
    began = time.monotonic()
    result = await desk.use("shell", command=SIGNED + "sleep 300 & echo done")
    assert time.monotonic() - began < PATIENCE
    assert result.text == "done\n[what it left running was ended]\n[exit 0]"
    assert not has_live_processes(session(desk))


async def test_a_child_that_hides_its_output_is_not_left_behind_either(desk: Desk) -> None:
    result = await desk.use("shell", command=SIGNED + "timeout 300 sleep 300 >/dev/null 2>&1 & echo done")
    assert "[what it left running was ended]" in result.text
    assert not has_live_processes(session(desk))


async def test_a_daemon_that_left_the_session_is_ended_too(desk: Desk) -> None:
    began = time.monotonic()
    result = await desk.use(
        "shell",
        command="setsid sh -c 'echo $$ > daemon; exec sleep 300' & echo done; until [ -s daemon ]; do sleep 0.02; done",
    )
    assert time.monotonic() - began < PATIENCE
    assert "[what it left running was ended]" in result.text
    assert not has_live_processes(int((desk.workspace / "daemon").read_text()))


async def test_a_child_that_ends_soon_may_have_its_say(desk: Desk) -> None:
    # It hears the end of the command by the pipe, and speaks then.
    result = await desk.use("shell", command="mkfifo p; (read x < p; echo late) & exec 3> p; echo done")
    assert result.text == "done\nlate\n[exit 0]"


@pytest.mark.parametrize("command", ["sleep 300", "trap '' TERM; while :; do sleep 1; done", "yes"])
async def test_cancelling_ends_everything_at_once(desk: Desk, command: str) -> None:
    call = asyncio.create_task(desk.use("shell", command=SIGNED + command))
    await eventually(lambda: signed(desk))
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < PATIENCE
    assert not has_live_processes(session(desk))


async def test_cancelling_twice_still_leaves_nothing_behind(desk: Desk) -> None:
    call = asyncio.create_task(desk.use("shell", command=SIGNED + "trap '' TERM; while :; do sleep 1; done"))
    await eventually(lambda: signed(desk))
    call.cancel()
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    # Nobody waits for it any more, and it is ended all the same.
    await eventually(lambda: not has_live_processes(session(desk)))


async def test_no_descriptor_is_leaked(desk: Desk) -> None:
    await desk.use("shell", command="true")
    before = descriptors()
    for line in ("true", "sleep 300 & true", "sleep 300"):
        await desk.use("shell", command=line, seconds=0.2)
    with refused("too_large"):
        await desk.use("shell", command="#" * 3_000_000)
    assert descriptors() == before


async def test_many_commands_run_side_by_side(desk: Desk) -> None:
    """Each waits for all the others: one after the other they would never end."""
    all_here = "until [ $(ls here | wc -l) = 20 ]; do sleep 0.05; done"
    commands = [f"mkdir -p here; touch here/{number}; {all_here}; echo {number}" for number in range(20)]
    results = await asyncio.gather(*(desk.use("shell", command=command) for command in commands))
    assert [result.text for result in results] == [f"{number}\n[exit 0]" for number in range(20)]


async def test_endless_output_is_kept_in_bounded_memory(desk: Desk) -> None:
    result = await desk.use("shell", command="echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result.text.startswith("first\nxxx")
    assert result.text.endswith("xxx\nlast\n[exit 0]")
    assert "bytes dropped" in result.text
    assert len(result.text) < 11_000_000
    assert sum(len(text) for text in desk.output) < command.LIVE + 1


async def test_the_preview_names_the_command_and_the_folder(desk: Desk) -> None:
    assert await desk.preview("shell", command="make") == f"would run in {desk.workspace}:\nmake"


def test_a_command_is_never_taken_for_harmless() -> None:
    tool = TOOLS["shell"]
    assert (tool.effect, tool.risk, tool.recourse) == ("write", "caution", "by_probe")
