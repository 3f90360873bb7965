"""The command line while a server runs: every command works through it, and the store is opened once."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.flows.program import Model, Sylph, finished
from tests.http.served import Served, serving
from tests.model_server import begin, call, say
from tests.patience import waiting

MODEL = "openai/scripted"
BESIDE = "--alone"


@pytest.fixture
async def through(sylph: Sylph, model: Model) -> AsyncGenerator[Served, None]:
    """A server whose model says little, and what it says does not matter."""
    await model([say("Hello from the model.")] * 20)
    async with serving(sylph) as running:
        yield running


async def held(pid: int) -> set[str]:
    """The files that a process has open."""
    paths = await asyncio.to_thread(lambda: list(Path(f"/proc/{pid}/fd").iterdir()))
    return {Path(path.readlink()).name for path in paths if path.is_symlink()}


async def test_a_task_is_done_by_the_server_and_told_as_ever(sylph: Sylph, model: Model) -> None:
    gate = asyncio.Event()
    server = await model([say("It is done.", hold=gate), say("Another.")])
    async with serving(sylph) as served:
        process = await sylph.start("--json", "do it")
        await server.until(lambda: bool(server.requests))
        assert "events.db" not in await held(process.pid)
        (turn,) = (await sylph.run("status", "--json")).json["running"]
        assert turn["pid"] == served.process.pid
        gate.set()
        done = await finished(process)
        assert (done.code, done.err) == (0, "")
        assert [event["type"] for event in done.events if event["seq"]][:2] == ["session.created", "input.received"]
        session = done.events[0]["session"]
        assert done.events[0]["data"]["workspace"] == str(sylph.workspace)
        again = await sylph.run("-s", session, "and another")
        assert (again.code, again.out) == (0, "Another.\n")
    # What the server did is there without it.
    assert (await sylph.run("session", "show", session, "--json")).json["turns"] == 2


async def test_ctrl_c_ends_the_turn_in_the_server(sylph: Sylph, model: Model) -> None:
    server = await model([begin("never all of it")])
    async with serving(sylph) as served:
        process = await sylph.start("a long task")
        await server.until(lambda: bool(server.requests))
        process.send_signal(signal.SIGINT)
        assert (await finished(process)).code == 130
        (one,) = (await served.client.get("/api/v1/sessions")).json()["items"]
        assert one["state"] == "idle"
        (task,) = (await sylph.run("task", "list", "--json")).json
        assert task["outcome"] == "cancelled"


async def test_whoever_leaves_leaves_the_turn_to_the_server(sylph: Sylph, model: Model) -> None:
    gate = asyncio.Event()
    server = await model([say("It takes a while until it is done.", hold=gate, at="stream")])
    async with serving(sylph):
        process = await sylph.start("a long task")
        await server.until(lambda: bool(server.requests))
        process.kill()
        await finished(process)
        following = await sylph.open("resume", "last")
        await following.see("It takes")
        gate.set()
        await following.see("until it is done.")
        assert await following.end() == 0


async def test_a_question_of_a_turn_that_the_api_began_is_answered_in_the_chat(sylph: Sylph, model: Model) -> None:
    await model(
        [call("shell", command="touch made"), say("It is made."), call("shell", command="rm made"), say("It stays.")]
    )
    async with serving(sylph) as served:
        session = (await served.session(model=MODEL))["id"]
        await served.say(session, "make it")
        await served.until(session, "asked")
        chat = await sylph.open("chat", "-s", session)
        await chat.see("touch made")
        chat.type("y\r")
        await chat.see("It is made.")
        assert (sylph.workspace / "made").exists()
        # Two sit before the same question: the first answer counts, and the other is asked no more.
        await served.say(session, "and away with it")
        await chat.see("rm made")
        other = await sylph.open("resume", session)
        await other.see("] no")
        other.type("n")
        await other.see("just Enter")
        other.type("keep it\r")
        await chat.see("It stays.")
        await chat.see("tokens in", times=2)
        assert await other.end() == 0
        chat.type("\x04")
        assert await chat.end() == 0
        assert (sylph.workspace / "made").exists()


async def test_two_command_lines_in_one_session_steer_one_turn(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command=waiting("go")), say("Both were heard.")])
    async with serving(sylph) as served:
        first = await sylph.start("--mode", "trust", "the first wish")
        await server.until(lambda: bool(server.requests))
        second = await sylph.start("-s", "last", "the second wish")
        (session,) = (await served.client.get("/api/v1/sessions")).json()["items"]
        await served.until(session["id"], "input.received", times=2)
        (sylph.workspace / "go").touch()
        one, other = await finished(first), await finished(second)
        assert (one.code, one.out) == (other.code, other.out) == (0, "Both were heard.\n")
        assert "the second wish" in str(server.requests[1].body)


async def test_a_killed_server_is_told_with_what_to_do_and_the_turn_goes_on_after_it(
    sylph: Sylph, model: Model
) -> None:
    server = await model([begin("never all of it"), say("Here is the answer."), say("And more.")])
    async with serving(sylph) as served:
        process = await sylph.start("a long task")
        await server.until(lambda: bool(server.requests))
        served.kill()
        done = await finished(process)
    session = (await sylph.run("session", "list", "--json")).json[0]["id"]
    assert done.code == 1
    assert "The server has ended" in done.err and "sylph serve" in done.err and f"sylph resume {session}" in done.err
    async with serving(sylph) as again:
        await again.until(session)
        more = await sylph.run("-s", session, "go on")
        assert (more.code, more.out) == (0, "And more.\n")


async def test_the_chat_waits_for_a_server_that_comes_again(sylph: Sylph, model: Model) -> None:
    server = await model([say("One."), begin("never all of it"), say("Two after all.")])
    async with serving(sylph) as served:
        chat = await sylph.open("chat")
        await chat.see("> ")
        chat.type("first\r")
        await chat.see("One.")
        await chat.see("1 round")
        chat.type("second\r")
        await server.until(lambda: len(server.requests) == 2)
        served.kill()
        await chat.see("The server has ended")
    async with serving(sylph):
        await chat.see("The server is back.")
        await chat.see("Two after all.")
        # Ctrl-D leaves a turn that runs only when it is pressed twice.
        await chat.see("tokens in", times=2)
        chat.type("\x04")
        assert await chat.end() == 0


async def test_beside_the_server_it_is_as_without_one(through: Served, sylph: Sylph) -> None:
    process = await sylph.start(BESIDE, "hello")
    done = await finished(process)
    assert (done.code, done.out) == (0, "Hello from the model.\n")
    assert (await sylph.run("hello", SYLPH_ALONE="1")).code == 0
    # A word after `--` is no option.
    told = await sylph.run("--json", "--", "what does", "--alone", "mean?")
    received = next(event for event in told.events if event["type"] == "input.received")
    assert received["data"]["text"] == "what does --alone mean?"


async def test_what_the_server_does_not_know_is_said(through: Served, sylph: Sylph) -> None:
    told = await sylph.run("hello", OPENAI_API_KEY="another-key")
    assert told.code == 0
    assert "does not have your OPENAI_API_KEY" in told.err and "--alone" in told.err
    assert "OPENAI_API_KEY" not in (await sylph.run("session", "list", OPENAI_API_KEY="another-key")).err
    wanted = await sylph.run("hello", SYLPH_MODEL="nowhere/model")
    assert (wanted.code, "nowhere/model" in wanted.err) == (4, True)


async def test_a_changed_configuration_reaches_the_server(through: Served, sylph: Sylph) -> None:
    assert (await sylph.run("config", "set", "limits.rounds", "1")).code == 0
    assert (await sylph.run("config", "set", "undo.max_files", "77")).code == 0
    told = await sylph.run("hello")
    assert (told.code, "undo.max_files" in told.err and "limits" not in told.err) == (0, True)
    assert (await through.client.get("/api/v1/config")).json()["pending"] == ["undo.max_files"]


async def test_a_key_that_is_saved_or_forgotten_is_so_for_the_server(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    (sylph.home / "sylph" / "config.toml").write_text(
        f'probe = false\n[providers.groq]\nbase_url = "{server.url}"\ndialect = "chat"\n'
    )
    sylph.environ.clear()
    async with serving(sylph):
        saved = await sylph.run("connect", "groq", "--stdin", stdin=b"gsk_of-a-test-0123456789abcdef\n")
        assert saved.code == 0, saved.err
        assert (await sylph.run("-m", "groq/scripted", "hi")).out == "Hello.\n"
        assert server.requests[-1].headers["authorization"] == "Bearer gsk_of-a-test-0123456789abcdef"
        assert (await sylph.run("disconnect", "groq")).code == 0
        await sylph.run("-m", "groq/scripted", "hi")
        assert all("authorization" not in asked.headers for asked in server.requests[1:])


async def test_a_server_of_another_version_is_left_alone(through: Served, sylph: Sylph, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text("import sylph\nsylph.__version__ = '0.0.1'\n")
    told = await sylph.run("hello", PYTHONPATH=str(tmp_path / "other"))
    assert (told.code, told.out) == (0, "Hello from the model.\n")
    assert "this is 0.0.1: working beside it" in told.err


async def test_a_silent_server_is_told(through: Served, sylph: Sylph) -> None:
    through.process.send_signal(signal.SIGSTOP)
    try:
        told = await sylph.run("session", "list")
        assert (told.code, "does not answer" in told.err, "--alone" in told.err) == (1, True, True)
        assert (await sylph.run("session", "list", BESIDE)).code == 0
    finally:
        through.process.send_signal(signal.SIGCONT)


SAME = (
    ("session", "list", "--json"),
    ("session", "show", "last", "--json"),
    ("session", "tree", "--json"),
    ("session", "export", "last"),
    ("session", "search", "hello", "--json"),
    ("session", "show", "nothing", "--json"),
    ("task", "list", "--json"),
    ("undo", "last", "--dry-run", "--json"),
    ("cost", "--json"),
    ("verify", "--json"),
    ("diagnose", "last", "--json"),
    ("policy", "explain", "--json", "shell", "ls"),
    ("resume", "--json"),
)


async def test_commands_tell_the_same_as_without_it(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch made"), say("Done."), say("Hello."), say("A title")])
    async with serving(sylph):
        first = (await sylph.run("--mode", "trust", "--json", "make it")).events[0]["session"]
        assert (await sylph.run("-s", first, "hello")).code == 0
        for words in SAME:
            both = await asyncio.gather(sylph.run(*words), sylph.run(*words, BESIDE))
            assert _steady(both[0]) == _steady(both[1]), words


async def test_commands_that_change_sessions_do_it_in_the_server(sylph: Sylph, model: Model, tmp_path: Path) -> None:
    await model([call("shell", command="echo secret-word > made"), say("Done."), say("Again.")])
    async with serving(sylph):
        id = (await sylph.run("--mode", "trust", "--json", "make it")).events[0]["session"]
        assert (await sylph.run("session", "rename", id, "A better name")).code == 0
        assert (await sylph.run("undo", id, "--yes")).code == 0
        assert not (sylph.workspace / "made").exists()
        assert (await sylph.run("retry", id)).out == "Again.\n"
        assert (await sylph.run("session", "fork", id)).code == 0
        kept = tmp_path / "kept"
        assert (await sylph.run("session", "export", id, "-o", str(kept))).code == 0
        assert (await sylph.run("erase", id, "--json", stdin=b"secret-word")).json["places"] > 0
        assert (await sylph.run("session", "delete", id)).code == 0
        assert (await sylph.run("session", "restore", id)).code == 0
        assert (await sylph.run("session", "delete", id, "--forever", "--yes")).code == 0
        assert (await sylph.run("session", "import", str(kept), "--new-id")).code == 0
        listed = (await sylph.run("session", "list", "--json")).json
        assert len(listed) == 2 and id not in {one["id"] for one in listed}
        assert (await sylph.run("verify")).code == 0


def _steady(done: Any) -> tuple[int, str, str]:
    """What a command tells, without what moves by itself."""
    text = done.out
    for line in text.splitlines():
        if any(f'"{name}"' in line for name in ("ms", "seconds", "at", "now", "since")):
            text = text.replace(line, "")
    return done.code, text, done.err


async def test_a_broken_off_answer_is_not_glued_to_the_next_and_a_distant_answer_is_told(
    sylph: Sylph, model: Model
) -> None:
    server = await model(
        [begin("half of it " * 40), say("Whole at last."), call("shell", command="touch made"), say("Fine.")]
    )
    async with serving(sylph) as served:
        chat = await sylph.open("chat")
        await chat.see("> ")
        chat.type("hello\r")
        await chat.see("half of it")
        served.kill()
        await chat.see("The server has ended")
    async with serving(sylph) as served:
        await chat.see("Whole at last.")
        await chat.see("tokens in")
        assert "half of itWhole" not in chat.text and "half of it Whole" not in chat.text
        chat.type("make it\r")
        await chat.see("touch made")
        (session,) = (await served.client.get("/api/v1/sessions")).json()["items"]
        path = f"/api/v1/sessions/{session['id']}"
        (asked,) = (await served.client.get(f"{path}/questions")).json()["items"]
        said = {"answers": [{"question": asked["id"], "answer": "yes"}]}
        assert (await served.client.post(f"{path}/answers", json=said)).status_code == 200
        await chat.see("answered elsewhere: yes")
        await chat.see("Fine.")
    assert len(server.requests) == 4
