"""Commands in the background, as the model uses them."""

import asyncio
import re

import pytest
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.tool import Result
from sylph.engine.runs import Runner


def started(result: Result) -> str:
    found = re.search(r"Started job (\S+?)\.", result.text)
    assert found
    return found[1]


async def test_a_job_is_started_looked_at_and_waited_for(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="echo one; sleep 0.3; echo two; exit 4"))
    assert "running" in (await desk.use("job", action="list")).text
    ended = await desk.use("job", action="wait", id=job)
    assert (ended.exit, ended.ok, "one\ntwo\n" in ended.text) == (4, False, True)
    assert (await desk.use("job", action="output", id=job, offset=4)).text.startswith("two\n")


async def test_the_call_returns_at_once_and_the_job_goes_on(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 0.2; echo late > made.txt"))
    assert not (desk.workspace / "made.txt").exists()
    await desk.use("job", action="wait", id=job)
    assert (desk.workspace / "made.txt").read_text() == "late\n"


async def test_waiting_has_an_end_and_the_job_has_not(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 30"))
    assert "still runs" in (await desk.use("job", action="wait", id=job, seconds=0.1)).text
    stopped = await desk.use("job", action="stop", id=job)
    assert "stopped" in stopped.text


async def test_a_job_outlives_the_process_that_started_it(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="sleep 0.4; echo survived; exit 2"))
    desk.runner.close()
    desk.runner = Runner(desk.runner.folder)
    ended = await desk.use("job", action="wait", id=job)
    assert (ended.exit, "survived" in ended.text) == (2, True)


async def test_a_job_of_an_earlier_process_can_be_stopped(desk: Desk) -> None:
    job = started(await desk.use("job", action="start", command="trap '' TERM; sleep 30 & wait; wait"))
    desk.runner.close()
    desk.runner = Runner(desk.runner.folder)
    async with asyncio.timeout(5):
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
