"""Commands in the background, as the model uses them."""

import asyncio
import re

import pytest
from tests.patience import PATIENCE, waiting
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.tool import ToolResult
from sylph.engine.commands.runner_client import RunnerClient


def started(result: ToolResult) -> str:
    found = re.search(r"Started job (\S+?)\.", result.text)
    assert found
    return found[1]


async def test_a_job_is_started_looked_at_and_waited_for(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command=f"echo one; {waiting('go')}; echo two; exit 4"))
    assert "running" in (await desk.use("job", action="list")).text
    desk.write("go", "")
    ended = await desk.use("job", action="wait", id=job)
    assert (ended.exit, ended.ok, "one\ntwo\n" in ended.text) == (4, False, True)
    assert (await desk.use("job", action="output", id=job, offset=4)).text.startswith("two\n")


async def test_the_call_returns_at_once_and_the_job_goes_on(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command=f"{waiting('go')}; echo late > made.txt"))
    assert not (desk.workspace / "made.txt").exists()
    desk.write("go", "")
    await desk.use("job", action="wait", id=job)
    assert (desk.workspace / "made.txt").read_text() == "late\n"


async def test_waiting_has_an_end_and_the_job_has_not(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 300"))
    assert "still runs" in (await desk.use("job", action="wait", id=job, seconds=0.1)).text
    stopped = await desk.use("job", action="stop", id=job)
    assert "stopped" in stopped.text


async def test_a_job_outlives_the_process_that_started_it(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 0.4; echo survived; exit 2"))
    desk.runner.close()
    desk.runner = RunnerClient(desk.runner.folder)
    ended = await desk.use("job", action="wait", id=job)
    assert (ended.exit, "survived" in ended.text) == (2, True)


async def test_a_job_of_an_earlier_process_can_be_stopped(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="trap '' TERM; sleep 300 & wait; wait"))
    desk.runner.close()
    desk.runner = RunnerClient(desk.runner.folder)
    async with asyncio.timeout(PATIENCE):
        assert "running" not in (await desk.use("job", action="stop", id=job)).text


async def test_a_started_job_is_not_started_again_after_a_crash(desk: Desk) -> None:
    tool, args = TOOLS["job"], {"action": "start", "command": "sleep 0.3"}
    assert tool.recover
    context = desk.context
    parsed = tool.args(**args)
    assert await tool.recover(parsed, context) is None
    await tool.run(parsed, context)
    again = await tool.recover(parsed, context)
    assert again
    assert "was started before" in again.text


@pytest.mark.parametrize("action", ["output", "wait", "stop"])
async def test_an_unknown_job_is_answered_with_the_known_ones(desk: Desk, action: str) -> None:
    with refused("not_found"):
        await desk.use("job", action=action, id="../../etc/passwd")


async def test_only_starting_and_stopping_need_a_yes(desk: Desk) -> None:
    judge = TOOLS["job"].judge
    assert judge
    effects = {name: judge(TOOLS["job"].args(action=name), desk.context).effect for name in ("start", "list", "stop")}  # pyright: ignore[reportCallIssue]
    assert effects == {"start": "write", "list": "read", "stop": "write"}


async def test_a_job_without_a_command_is_refused(desk: Desk) -> None:
    with refused("bad_command"):
        await desk.use("job", action="start")


ECHO = 'while read -r line; do echo "got $line"; done; echo end'


async def test_a_job_is_talked_to_and_its_answer_comes_with_the_call(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command=ECHO, interactive=True))
    assert "reads input" in (await desk.use("job", action="list")).text
    desk.current = "t1_c2"
    assert "\ngot one\n" in (await desk.use("job", action="input", id=job, text="one\n")).text
    desk.current = "t1_c3"
    await desk.use("job", action="input", id=job, text="two\n", close=True)
    ended = await desk.use("job", action="wait", id=job)
    assert "got one\ngot two\nend\n" in ended.text
    with refused("no_input") as caught:
        await desk.use("job", action="input", id=job, text="three\n")
    assert "does not run" in str(caught.value)


async def test_a_job_of_an_earlier_process_is_talked_to(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command=ECHO, interactive=True))
    desk.runner.close()
    desk.runner = RunnerClient(desk.runner.folder)
    desk.current = "t1_c2"
    assert "got late" in (await desk.use("job", action="input", id=job, text="late\n", close=True)).text
    assert (await desk.use("job", action="wait", id=job)).exit == 0


async def test_an_input_is_taken_once_however_often_it_is_sent(desk: Desk) -> None:
    tool = TOOLS["job"]
    assert tool.recover
    job = started(await desk.use("job", action="start", command=ECHO, interactive=True))
    desk.current = "t1_c2"
    again = tool.args(action="input", id=job, text="one\n")  # pyright: ignore[reportCallIssue]
    assert await tool.recover(again, desk.context) is None
    await tool.run(again, desk.context)
    await tool.run(again, desk.context)
    told = await tool.recover(again, desk.context)
    assert told
    assert "Sent before" in told.text
    desk.current = "t1_c3"
    await desk.use("job", action="input", id=job, close=True)
    assert (await desk.use("job", action="wait", id=job)).text.count("got one") == 1


async def test_a_megabyte_goes_through_whole(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 0.2; wc -c", interactive=True))
    desk.current = "t1_c2"
    await desk.use("job", action="input", id=job, text="ä" * 500_000, close=True)
    assert "1000000\n" in (await desk.use("job", action="wait", id=job)).text


async def test_half_a_message_of_somebody_who_was_killed_spoils_nothing(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command=ECHO, interactive=True))
    with (desk.runner.folder / f"s.{job}.in").open("wb") as fifo:
        fifo.write(b'\n{"do": "input", "id": "x", "text": "half')
    desk.current = "t1_c2"
    assert "\ngot whole\n" in (await desk.use("job", action="input", id=job, text="whole\n", close=True)).text


async def test_a_job_without_input_says_how_to_get_one(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 300"))
    for arguments, kind in {"": "bad_input", "x": "no_input"}.items():
        with refused(kind):
            await desk.use("job", action="input", id=job, text=arguments)
    await desk.use("job", action="stop", id=job)


async def test_what_nobody_reads_is_not_taken_for_ever(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 300", interactive=True))
    with refused("not_taken"):
        for number in range(9):
            desk.current = f"t1_c{number + 2}"
            await desk.use("job", action="input", id=job, text="x" * 1_000_000)
    await desk.use("job", action="stop", id=job)


async def test_a_job_has_its_variables_and_sylph_s_own_are_refused(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="echo $COLOUR", env={"COLOUR": "blue"}))
    assert "blue\n" in (await desk.use("job", action="wait", id=job)).text
    for tool in ("job", "shell"):
        with refused("reserved_variable"):
            await desk.use(
                tool, command="true", env={"SYLPH_RUN": "x"}, **({"action": "start"} if tool == "job" else {})
            )


async def test_stopping_a_job_of_an_earlier_process_says_that_it_was_stopped(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="(setsid sleep 79 &); sleep 79"))
    desk.runner.close()
    desk.runner = RunnerClient(desk.runner.folder)
    assert "stopped" in (await desk.use("job", action="stop", id=job)).text
    assert not list(desk.runner.folder.glob("*.in"))
