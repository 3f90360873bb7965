"""`sylph resume --all`: everything that was left open goes on, each session by one process only."""

import asyncio

from tests.flows.program import Model, Sylph, finished
from tests.flows.test_resume import interrupted
from tests.model_server import Asked, Step, begin, call, fail, say


def mark(asked: Asked) -> Step:
    """A task is stopped when it is first asked about; then it leaves one line, and ends."""
    said = asked.json["messages"]
    word = next(text for text in asked.users if text.startswith("task")).split()[-1]
    if said[-1]["role"] == "tool":
        return say(f"Done {word}.")
    resumed = any("interruption" in str(each["content"]) for each in said)
    slow = begin("never all of it")
    return call("shell", command=f"echo {word} >> journal; sleep 0.3") if resumed else slow


async def left_open(sylph: Sylph, model: Model, count: int) -> None:
    server = await model(mark)
    for number in range(count):
        await interrupted(sylph, server, "--mode", "trust", f"task {number}")


async def test_all_interrupted_turns_are_finished_with_their_own_mode(sylph: Sylph, model: Model) -> None:
    await left_open(sylph, model, 3)
    done = await sylph.run("resume", "--all")
    assert done.code == 0, done.err
    assert sorted(line.split("  ", 1)[1] for line in done.out.splitlines()) == [
        f"finished  task {number}" for number in range(3)
    ]
    assert sorted((sylph.workspace / "journal").read_text().split()) == ["0", "1", "2"]
    again = await sylph.run("resume", "--all")
    assert (again.code, again.out) == (0, "Nothing was left open.\n")


async def test_two_processes_at_once_resume_each_session_once(sylph: Sylph, model: Model) -> None:
    await left_open(sylph, model, 4)
    both = [await sylph.start("resume", "--all", "--json") for _ in range(2)]
    one, other = await asyncio.gather(*(finished(each) for each in both))
    assert (one.code, other.code) == (0, 0), one.err + other.err
    ended = [each["session"] for done in (one, other) for each in done.json["resumed"] if each["state"] == "ended"]
    assert len(ended) == len(set(ended)) == 4
    assert sorted((sylph.workspace / "journal").read_text().split()) == ["0", "1", "2", "3"]


async def test_one_that_fails_does_not_hold_the_others_up_and_shows_in_the_exit_code(
    sylph: Sylph, model: Model
) -> None:
    slow = begin("never all of it")
    server = await model([slow, slow, fail(400, "bad day"), say("Fine.")])
    for task in ("the first", "the second"):
        await interrupted(sylph, server, task)
    done = await sylph.run("resume", "--all", "--json")
    assert done.code == 4
    assert sorted(str(one["outcome"]) for one in done.json["resumed"]) == ["failed", "finished"]


async def test_what_needs_a_person_is_refused_where_nobody_is_there(sylph: Sylph, model: Model) -> None:
    slow = begin("never all of it")
    server = await model([slow, call("write", path="a.txt", content="x"), say("I was not allowed.")])
    await interrupted(sylph, server, "write it")
    done = await sylph.run("resume", "--all")
    assert (done.code, (sylph.workspace / "a.txt").exists()) == (0, False)
    assert "finished" in done.out


async def test_a_person_at_the_terminal_is_asked(sylph: Sylph, model: Model) -> None:
    slow = begin("never all of it")
    server = await model([slow, call("write", path="a.txt", content="x"), say("Written.")])
    await interrupted(sylph, server, "write it")
    terminal = await sylph.open("resume", "--all")
    await terminal.see("[n] no")
    terminal.type("y")
    assert await terminal.end() == 0
    assert (sylph.workspace / "a.txt").read_text() == "x"


async def test_all_takes_no_session_and_no_other_mode(sylph: Sylph) -> None:
    for more in (["last"], ["--drop"], ["--mode", "trust"]):
        done = await sylph.run("resume", "--all", *more)
        assert (done.code, "as it was" in done.err) == (2, True)
