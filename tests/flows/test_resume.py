"""What is left when a process dies or a turn fails, and how to go on."""

from pathlib import Path

from tests.flows.program import Model, Sylph, finished, killed
from tests.model_server import ModelServer, begin, call, fail, say
from tests.patience import eventually, waiting

SLOW = begin("never all of it")


async def interrupted(sylph: Sylph, server: ModelServer, *words: str) -> None:
    """Starts a task and kills Sylph in the middle of it."""
    seen = len(server.requests)
    process = await sylph.start(*words)
    await server.until(lambda: len(server.requests) > seen)
    process.kill()
    await finished(process)


async def test_the_only_interrupted_turn_needs_no_name(sylph: Sylph, model: Model) -> None:
    server = await model([SLOW, say("Hello."), say("Here is the answer.")])
    await interrupted(sylph, server, "a long task")
    await sylph.run("say hello")
    assert (await sylph.run("resume")).out == "Here is the answer.\n"


async def test_several_interrupted_turns_are_listed_with_their_tasks(sylph: Sylph, model: Model) -> None:
    server = await model([SLOW, SLOW])
    await interrupted(sylph, server, "the first task")
    await interrupted(sylph, server, "the second task")
    done = await sylph.run("resume")
    assert done.code == 2
    found = (await sylph.run("status", "--json")).json["interrupted"]
    assert {one["task"] for one in found} == {"the first task", "the second task"}
    assert all(f"sylph resume {one['session']}   {one['task']}" in done.err for one in found)
    assert "resume last" not in done.err


async def test_without_an_interrupted_turn_resume_says_so(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    await sylph.run("say hello")
    done = await sylph.run("resume")
    assert done.code == 2
    assert "No turn was interrupted." in done.err
    assert "resume last" not in done.err


async def test_an_interrupted_turn_can_be_dropped(sylph: Sylph, model: Model) -> None:
    server = await model([SLOW, say("Hello.")])
    await interrupted(sylph, server, "a long task")
    done = await sylph.run("resume", "--drop")
    assert (done.code, len(server.requests)) == (0, 1)
    assert "'a long task'" in done.out
    assert (await sylph.run("task", "list", "--json")).json[0]["outcome"] == "cancelled"
    assert "interrupted" not in (await sylph.run("say hello")).err


async def test_only_what_was_interrupted_here_is_named(sylph: Sylph, model: Model) -> None:
    server = await model([SLOW, say("Hello.")])
    (sylph.workspace / "sub").mkdir()
    await interrupted(sylph, server, "-C", "sub", "a long task")
    assert "interrupted" not in (await sylph.run("say hello")).err


async def test_a_queued_follow_up_is_done_too(sylph: Sylph, model: Model) -> None:
    server = await model([SLOW, say("The first."), say("The second.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("one\r")
    await server.until(lambda: bool(server.requests))
    chat.type("/follow two\r")
    await chat.see("queued: it is heard")
    chat.process.kill()
    await chat.end()
    done = await sylph.run("resume")
    assert (done.code, done.out) == (0, "The first.\nThe second.\n")
    assert (await sylph.run("status", "--json")).json["interrupted"] == []


async def test_a_resumed_call_is_shown_by_its_name(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=f"touch begun; {waiting('go')}"), say("Done.")])
    process = await sylph.start("--mode", "trust", "x")
    await until_exists(sylph.workspace, "begun")
    await killed(process)
    (sylph.workspace / "go").touch()
    await finished(process)
    done = await sylph.run("resume")
    assert f"▸ shell  touch begun; {waiting('go')}  ✓" in done.err


async def test_a_failed_turn_can_be_tried_again(sylph: Sylph, model: Model) -> None:
    server = await model([fail(400, "bad day"), say("Better now.")])
    failed = await sylph.run("say something")
    (session,) = (await sylph.run("session", "list", "--json")).json
    assert failed.code == 4
    assert f"→ sylph retry {session['id']}" in failed.err
    again = await sylph.run("retry", session["id"])
    assert (again.code, again.out) == (0, "Better now.\n")
    assert server.requests[1].users[0].endswith("say something")


async def test_a_dry_run_stays_one_when_it_is_tried_again(sylph: Sylph, model: Model) -> None:
    writing = call("write", path="a.txt", content="x")
    await model([writing, say("Would."), writing, say("Would again.")])
    await sylph.run("--dry-run", "--mode", "trust", "write it")
    done = await sylph.run("retry")
    assert (done.out, (sylph.workspace / "a.txt").exists()) == ("Would again.\n", False)
    assert "dry run: nothing was changed" in done.err


async def test_half_an_answer_is_kept_and_shown(sylph: Sylph, model: Model) -> None:
    await model([say("It is because of the weather, as far as one can tell.", drop=True, at="stream")])
    done = await sylph.run("why?")
    assert done.code == 4
    shown = (await sylph.run("session", "show", "last")).out
    assert "It is because" in shown
    assert "[it ended here, unfinished]" in shown


async def until_exists(folder: Path, name: str) -> None:
    await eventually((folder / name).exists, name)
