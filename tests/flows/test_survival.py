"""kill -9 in the middle of things: nothing is lost, nothing happens twice, and the truth comes back."""

from asyncio.subprocess import Process

import msgspec
from tests.flows.program import Model, Sylph, killed
from tests.flows.program import finished as done
from tests.model_server import call, say
from tests.patience import eventually, waiting

SLOW = f"echo begun >> journal; {waiting('go')}; echo done >> journal; echo output of the command; exit 3"


async def interrupted(sylph: Sylph) -> tuple[Process, str]:
    """A task that is killed while its command runs, which goes on as soon as there is a file `go`; and its session."""
    process = await sylph.start("--json", "--mode", "trust", "do it")
    assert process.stdout
    session = msgspec.json.decode(await process.stdout.readline())["session"]
    await eventually((sylph.workspace / "journal").exists, "the command")
    await killed(process)
    return process, session


async def finished(sylph: Sylph, session: str) -> list[dict[str, object]]:
    shown = await sylph.run("session", "export", session)
    return [event["data"] for event in shown.events if event.get("type") == "tool.finished"]


async def test_a_command_that_outlived_its_sylph_is_followed_again(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=SLOW), say("It ended with 3.")])
    process, session = await interrupted(sylph)
    resuming = await sylph.start("resume", session)

    async def followed() -> bool:
        return [each["pid"] for each in (await sylph.run("status", "--json")).json["running"]] == [resuming.pid]

    await eventually(followed, "somebody who works on the session")
    (sylph.workspace / "go").touch()
    resumed = await done(resuming)
    await process.communicate()
    (result,) = await finished(sylph, session)
    assert (result["exit"], result["output"]) == (3, "output of the command\n[exit 3]")
    assert "It ended with 3." in resumed.out
    assert (sylph.workspace / "journal").read_text() == "begun\ndone\n"


async def test_a_command_that_ended_meanwhile_tells_its_true_end(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=SLOW), say("It ended with 3.")])
    process, session = await interrupted(sylph)
    (sylph.workspace / "go").touch()
    (run,) = (sylph.home / "sylph" / "data" / "runs").glob("*.run")
    await eventually(lambda: b'{"ended"' in run.read_bytes(), "the end of the command")
    await process.communicate()
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
