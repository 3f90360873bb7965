"""kill -9 in the middle of things: nothing is lost, nothing happens twice, and the truth comes back."""

import asyncio
import signal

from tests.flows.program import Done, Model, Sylph
from tests.model_server import call, say

SLOW = "echo begun >> journal; sleep 0.8; echo done >> journal; echo output of the command; exit 3"


async def killed(sylph: Sylph) -> str:
    """A task that is killed while its command runs; returns the session."""
    process = await sylph.start("--json", "--mode", "trust", "do it")
    while not (sylph.workspace / "journal").exists():  # noqa: ASYNC110 - a file of another process
        await asyncio.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    out, _ = await process.communicate()
    return Done(0, out.decode(), "").events[0]["session"]


async def finished(sylph: Sylph, session: str) -> list[dict[str, object]]:
    shown = await sylph.run("session", "export", session)
    return [event["data"] for event in shown.events if event.get("type") == "tool.finished"]


async def test_a_command_that_outlived_its_sylph_is_followed_again(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=SLOW), say("It ended with 3.")])
    session = await killed(sylph)
    resumed = await sylph.run("resume", session)
    (result,) = await finished(sylph, session)
    assert (result["exit"], result["output"]) == (3, "output of the command\n[exit 3]")
    assert "It ended with 3." in resumed.out
    assert (sylph.workspace / "journal").read_text() == "begun\ndone\n"


async def test_a_command_that_ended_meanwhile_tells_its_true_end(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=SLOW), say("It ended with 3.")])
    session = await killed(sylph)
    await asyncio.sleep(1.2)
    await sylph.run("resume", session)
    (result,) = await finished(sylph, session)
    assert (result["exit"], result["output"]) == (3, "output of the command\n[exit 3]")
    assert (sylph.workspace / "journal").read_text() == "begun\ndone\n"


async def test_nothing_of_a_collected_command_stays_behind(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="echo hi"), say("Done.")])
    await sylph.run("--mode", "trust", "do it")
    assert list((sylph.home / "sylph" / "data" / "runs").iterdir()) == []


async def test_the_tour_works_with_nothing_set_up_and_without_a_terminal(sylph: Sylph) -> None:
    done = await sylph.run("tour")
    assert done.code == 0, done.out + done.err
    for said in ("scripted", "May edit run?", "is dead", "[exit 0]", "every chain holds"):
        assert said in done.out


async def test_without_any_model_sylph_alone_runs_the_tour_and_a_task_is_an_error(sylph: Sylph) -> None:
    alone, task = await sylph.run(), await sylph.run("do something real")
    assert (alone.code, task.code) == (0, 4)
    assert "every chain holds" in alone.out
    assert "OPENAI_API_KEY" in task.err
