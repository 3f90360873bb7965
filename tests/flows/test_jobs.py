"""Commands in the background: the model starts and talks to them, the user sees and ends them."""

from tests.flows.program import Done, Model, Sylph, killed
from tests.flows.told import results
from tests.model_server import call, say
from tests.patience import eventually, waiting

ECHO = 'while read -r line; do echo "got $line" | tee -a heard; done'


async def test_a_job_is_started_talked_to_and_ended_from_the_command_line(sylph: Sylph, model: Model) -> None:
    server = await model(
        [
            call("job", action="start", command=ECHO, interactive=True, env={"COLOUR": "blue"}),
            call("job", action="input", id="t1_c1", text="one\n"),
            say("It listens."),
        ]
    )
    session = (await sylph.run("--json", "--mode", "trust", "start it")).events[0]["session"]
    assert "got one" in results(server)[1]
    (job,) = (await sylph.run("job", "list", "--json")).json
    assert (job["id"], job["state"], job["hears"]) == (f"{session}.t1_c1", "running", True)
    assert ECHO[:50] in (await sylph.run("job", "list")).out
    assert (await sylph.run("job", "output", job["id"])).out == "got one\n"
    stopped = await sylph.run("job", "stop", job["id"])
    assert (stopped.code, stopped.out) == (0, f"{job['id']}  stopped\n")
    assert (await sylph.run("job", "list")).out == "No job runs.\n"
    assert (await sylph.run("job", "list", "--all", "--json")).json[0]["why"] == "stopped"
    assert (await sylph.run("job", "stop", job["id"])).code == 1


async def test_a_job_nobody_knows_is_answered_with_what_to_do(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    await sylph.run("hello")
    for name in ("last.t9_c9", "nosuch"):
        done = await sylph.run("job", "stop", name)
        assert (done.code, "sylph job list --all" in done.err) == (1, True)
        assert f"There is no job '{name}'" in done.err


async def test_a_job_of_a_killed_sylph_hears_the_next_one_and_hears_it_once(sylph: Sylph, model: Model) -> None:
    await model(
        [
            call("job", action="start", command=ECHO, interactive=True),
            call("shell", command=f"touch begun; {waiting('go')}"),
            call("job", action="input", id="t1_c1", text="late\n", close=True),
            call("job", action="wait", id="t1_c1"),
            say("Done."),
        ]
    )
    process = await sylph.start("--json", "--mode", "trust", "x")
    await eventually((sylph.workspace / "begun").exists, "the command")
    await killed(process)
    (sylph.workspace / "go").touch()
    out, _ = await process.communicate()
    session = Done(0, out.decode(), "").events[0]["session"]
    assert (await sylph.run("resume", session)).code == 0
    assert (sylph.workspace / "heard").read_text() == "got late\n"


async def test_a_session_that_is_removed_takes_its_jobs_along(sylph: Sylph, model: Model) -> None:
    await model([call("job", action="start", command="sleep 300"), say("Started.")])
    done = await sylph.run("--mode", "trust", "start it")
    (job,) = (await sylph.run("job", "list", "--json")).json
    told = f"still running: sleep 300 → sylph job stop {job['id']}"
    assert told in done.err
    chat = await sylph.open("chat", "-s", "last")
    await chat.see("scripted · trust")
    chat.type("\x04")
    await chat.end()
    await chat.see(told)
    await sylph.run("session", "delete", "last", "--forever", "--yes")
    assert list((sylph.home / "sylph" / "data" / "runs").iterdir()) == []


async def test_a_session_that_is_deleted_takes_its_jobs_along(sylph: Sylph, model: Model) -> None:
    await model([call("job", action="start", command="sleep 3000"), say("It runs.")])
    await sylph.run("--mode", "trust", "start it")
    assert [job["state"] for job in (await sylph.run("job", "list", "--json")).json] == ["running"]
    assert (await sylph.run("session", "delete", "last", "-y")).code == 0
    assert (await sylph.run("job", "list")).out == "No job runs.\n"
