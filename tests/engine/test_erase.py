"""A secret is taken out of a log for good, and the rest is proven as before."""

import json
from pathlib import Path

import pytest
from tests.engine.stage import TOOLS, story

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.core.provider import ModelReply
from sylph.engine.runtime.runtime import Runtime
from sylph.testing import begin_session, call_tool, play_turn, say, scripted_runtime

SECRET = 'hunter2"\\ü'


async def spoken(engine: Runtime, home: Path) -> str:
    """A session with a secret in its input, its answers, arguments, results, notes and a whole output."""
    session = await begin_session(engine, home)
    await play_turn(engine, session, f"the password is {SECRET}, keep it")
    return session


def lines() -> list[object]:
    much = "x" * 3000
    return [call_tool("much", f"I will use {SECRET}", text=f"{SECRET} {much}\n", times=40), say(f"Done with {SECRET}.")]


async def test_nothing_of_it_is_left_and_the_chain_holds(home: Path) -> None:
    async with scripted_runtime(home, lines(), tools=TOOLS) as engine:  # pyright: ignore[reportArgumentType]
        session = await spoken(engine, home)
        assert await engine.erase_secret(session, SECRET, "a password") >= 5
        events = await story(engine, session)
        (verified,) = await engine.verify_sessions(session)
    assert (verified.ok, events[-1].type) == (True, "session.erased")
    for path in (home / "data").iterdir():
        assert path.is_dir() or b"hunter2" not in path.read_bytes()


async def test_the_session_goes_on(home: Path) -> None:
    async with scripted_runtime(home, [*lines(), say("Yes.")], tools=TOOLS) as engine:  # pyright: ignore[reportArgumentType]
        session = await spoken(engine, home)
        await engine.erase_secret(session, SECRET)
        await play_turn(engine, session, "are you still there?")
        (verified,) = await engine.verify_sessions(session)
    assert verified.ok


async def test_what_is_not_there_changes_nothing(home: Path) -> None:
    async with scripted_runtime(home, [say("Hello.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "hello")
        before = engine.log.head(session)
        assert await engine.erase_secret(session, "not in there") == 0
        assert engine.log.head(session) == before
        with pytest.raises(UserError, match="too short"):
            await engine.erase_secret(session, "a")


async def test_an_erased_fact_that_nobody_vouches_for_is_tampering(home: Path) -> None:
    async with scripted_runtime(home, lines(), tools=TOOLS) as engine:  # pyright: ignore[reportArgumentType]
        session = await spoken(engine, home)
        await engine.erase_secret(session, SECRET)
        change = "update event set data = replace(data, 'erased', 'forged') where type = 'input.received'"
        await engine.log.execute_change(lambda db: db.execute(change))
        (verified,) = await engine.verify_sessions(session)
        assert [problem.kind for problem in verified.problems] == ["record_changed"]
        back = "update event set data = replace(data, 'forged', 'erased') where type = 'input.received'"
        await engine.log.execute_change(lambda db: db.execute(back))


async def test_exports_imports_and_forks_of_an_erased_session_hold(home: Path) -> None:
    async with scripted_runtime(home, lines(), tools=TOOLS) as engine:  # pyright: ignore[reportArgumentType]
        session = await spoken(engine, home)
        end = engine.log.head(session).seq
        await engine.erase_secret(session, SECRET)
        child = await engine.fork_session(session, at=end - 2)
        exported = [line async for line in engine.export_session(session)]
        fresh = (await engine.import_session(exported, new_id=True)).session
        assert all(verified.ok for verified in await engine.verify_sessions())
        assert [line async for line in engine.export_session(fresh)]
        await engine.send(child, commands.Rename(title="a fork"))
    assert not any(b"hunter2" in line for line in exported)


async def test_a_session_at_work_is_not_cleaned(home: Path) -> None:
    async with scripted_runtime(home, [], tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        with pytest.raises(UserError, match="while a turn is open"):
            await engine.erase_secret(session, "secret")
        await engine.wait_until_idle(session)


@pytest.mark.parametrize(
    "written",
    [
        '[{"text":"hunter2=<ü/🙂>"}]',
        '[{"text":"hunter2\\u003d\\u003cü\\/🙂\\u003e"}]',
        '[{"text":"hunter2\\u003D\\u003C\\u00FC/\\uD83D\\uDE42\\u003E"}]',
    ],
)
async def test_it_is_found_however_a_service_has_written_it(home: Path, written: str) -> None:
    """What a service said goes back to it byte for byte, so it is kept with the service's own escapes."""
    secret = "hunter2=<ü/🙂>"
    assert json.loads(written)[0]["text"] == secret
    reply = ModelReply(text="Done.", finish="stop", native=written)
    async with scripted_runtime(home, [reply]) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "hello")
        assert await engine.erase_secret(session, secret, "a password") == 1
        events = await story(engine, session)
    assert "hunter2" not in str(events)


async def test_a_secret_of_many_pages_is_found_as_we_write_it(home: Path) -> None:
    secret = 'line "one"\n' * 1000
    async with scripted_runtime(home, [say("Done.")]) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, f"<{secret}>")
        assert await engine.erase_secret(session, secret, "a file") >= 1
        assert "line" not in str(await story(engine, session))
