"""The Python session of a conversation, through the whole program and over its death."""

from tests.flows.program import Done, Model, Sylph, killed
from tests.flows.told import results
from tests.model_server import call, say
from tests.patience import eventually


async def test_variables_stay_from_turn_to_turn_and_the_user_can_end_it(sylph: Sylph, model: Model) -> None:
    server = await model(
        [
            call("python", code="data = list(range(100_000))\ndata"),
            say("Made."),
            call("python", code="sum(data)"),
            say("Summed."),
            call("python", code="data"),
            say("Gone."),
        ]
    )
    await sylph.run("--mode", "trust", "make data")
    assert "length 100000" in results(server)[0]
    assert len(results(server)[0]) < 200
    await sylph.run("-s", "last", "sum it up")
    assert results(server)[1] == "[_2: int] 4999950000"
    (job,) = (await sylph.run("job", "list", "--json")).json
    assert job["command"] == "python session"
    await sylph.run("job", "stop", job["id"])
    await sylph.run("-s", "last", "look again")
    assert "its variables are lost" in results(server)[2]
    assert "NameError" in results(server)[2]
    await sylph.run("session", "delete", "last", "--forever", "--yes")
    assert (await sylph.run("job", "list", "--all")).out == "No jobs.\n"


async def test_code_under_a_killed_sylph_runs_once_and_the_session_lives_on(sylph: Sylph, model: Model) -> None:
    wait = "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.05)\n"
    code = f"open('ran', 'a').write('x')\n{wait}print('slow')\nkept = 42\nkept"
    server = await model([call("python", code=code), call("python", code="kept + 1"), say("43."), say("Ended.")])
    process = await sylph.start("--json", "--mode", "trust", "compute")
    await eventually((sylph.workspace / "ran").exists, "the code")
    await killed(process)
    (sylph.workspace / "go").touch()
    out, _ = await process.communicate()
    session = Done(0, out.decode(), "").events[0]["session"]
    await sylph.run("resume", session)
    assert results(server) == ["slow\n[_1: int] 42", "[_2: int] 43"]
    assert (sylph.workspace / "ran").read_text() == "x"
    await sylph.run("session", "delete", session, "--forever", "--yes")


async def test_without_a_yes_no_code_runs(sylph: Sylph, model: Model) -> None:
    server = await model([call("python", code="open('made', 'w')"), say("I may not.")])
    await sylph.run("make it")
    assert "not permitted" in results(server)[0]
    assert not (sylph.workspace / "made").exists()
    assert (await sylph.run("job", "list", "--all")).out == "No jobs.\n"
