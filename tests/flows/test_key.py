"""`sylph --key`: a task that is sent again is the same task."""

import asyncio

from tests.flows.program import Model, Sylph, finished, killed
from tests.flows.test_resume import until_exists
from tests.model_server import call, say
from tests.patience import waiting

MARK = call("shell", command="echo once >> journal; sleep 0.8; exit 3")
HELD = call("shell", command=f"echo once >> journal; {waiting('go')}; exit 3")


def journal(sylph: Sylph) -> str:
    return (sylph.workspace / "journal").read_text()


async def test_sent_again_it_gives_the_same_answer_and_does_nothing(sylph: Sylph, model: Model) -> None:
    server = await model([MARK, say("It ended with 3.")])
    first = await sylph.run("--key", "k1", "--mode", "trust", "do it")
    again = await sylph.run("--key", "k1", "--mode", "trust", "do it")
    assert (first.code, first.out) == (again.code, again.out) == (0, "It ended with 3.\n")
    assert (len(server.requests), journal(sylph)) == (2, "once\n")
    assert len((await sylph.run("session", "list", "--json")).json) == 1
    assert "sent before with this key" in again.err


async def test_as_json_the_same_events_come_again(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    first = await sylph.run("run", "--key", "k1", "--json", "greet me")
    again = await sylph.run("run", "--key", "k1", "--json", "greet me")
    assert [event for event in first.events if event["seq"]] == again.events


async def test_two_at_the_same_moment_are_one_turn(sylph: Sylph, model: Model) -> None:
    server = await model([MARK, say("It ended with 3."), say("A second turn!")])
    both = [await sylph.start("--key", "k1", "--mode", "trust", "do it") for _ in range(2)]
    one, other = await asyncio.gather(*(finished(each) for each in both))
    assert (one.code, other.code, one.out, other.out) == (0, 0, *["It ended with 3.\n"] * 2), one.err + other.err
    assert (len(server.requests), journal(sylph)) == (2, "once\n")


async def test_where_the_first_was_killed_the_second_finishes_it(sylph: Sylph, model: Model) -> None:
    await model([HELD, say("It ended with 3.")])
    process = await sylph.start("--key", "k1", "--mode", "trust", "do it")
    await until_exists(sylph.workspace, "journal")
    await killed(process)
    (sylph.workspace / "go").touch()
    await finished(process)
    done = await sylph.run("--key", "k1", "do it")
    assert (done.code, done.out, journal(sylph)) == (0, "It ended with 3.\n", "once\n")
    assert len((await sylph.run("session", "list", "--json")).json) == 1


async def test_killed_while_another_waits_for_it_the_other_goes_on(sylph: Sylph, model: Model) -> None:
    await model([HELD, say("It ended with 3.")])
    first = await sylph.start("--key", "k1", "--mode", "trust", "do it")
    await until_exists(sylph.workspace, "journal")
    second = await sylph.start("--key", "k1", "do it")
    assert second.stderr
    while b"sent before with this key" not in (said := await second.stderr.readline()):
        assert said, "It ended without waiting."
    await killed(first)
    (sylph.workspace / "go").touch()
    await finished(first)
    done = await finished(second)
    assert (done.code, done.out, journal(sylph)) == (0, "It ended with 3.\n", "once\n"), done.err


async def test_a_failed_turn_is_told_again_with_its_exit_code(sylph: Sylph, model: Model) -> None:
    await model([say("cut", drop=True, at="stream")] * 6)
    first = await sylph.run("--key", "k1", "go")
    again = await sylph.run("--key", "k1", "go")
    assert first.code == again.code == 4


async def test_another_task_under_the_same_key_is_refused(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    await sylph.run("--key", "k1", "greet me")
    done = await sylph.run("--key", "k1", "insult me")
    assert done.code == 2 or done.code == 1
    assert "belongs to another task" in done.err


async def test_a_session_has_keys_of_its_own(sylph: Sylph, model: Model) -> None:
    server = await model([say("One."), say("Two."), say("Three.")])
    await sylph.run("start it")
    (session,) = (await sylph.run("session", "list", "--json")).json
    named = ("-s", session["id"], "--key", "k1", "go on")
    assert [(await sylph.run(*named)).out for _ in range(2)] == ["Two.\n", "Two.\n"]
    assert len(server.requests) == 2


async def test_a_fork_does_not_answer_for_its_parent(sylph: Sylph, model: Model) -> None:
    server = await model([say("One.")])
    await sylph.run("--key", "k1", "go")
    await sylph.run("session", "fork", "last")
    assert (await sylph.run("--key", "k1", "go")).out == "One.\n"
    assert len(server.requests) == 1


async def test_a_key_must_be_one(sylph: Sylph) -> None:
    for key in ("", " ", "x" * 201):
        done = await sylph.run("--key", key, "go")
        assert (done.code, "1 to 200 characters" in done.err) == (2, True)
