"""`sylph chat` in a terminal of its own, and without one."""

import asyncio
import re
import shutil

import pytest
from tests.flows.program import SYLPH, Model, Sylph
from tests.model_server import begin, call, fail, say
from tests.patience import eventually, waiting

CTRL_C, CTRL_D, ALT_ENTER = "\x03", "\x04", "\x1b\r"


async def test_a_conversation(sylph: Sylph, model: Model) -> None:
    server = await model([say("I am Sylph."), say("You said hello.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("hello\r")
    await chat.see("I am Sylph.")
    await chat.see("1 round")
    chat.type("what did I say?\r")
    await chat.see("You said hello.")
    await chat.see("1 round", times=2)
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert any("hello" in text for text in server.requests[1].users)


async def test_the_chat_says_where_it_is_and_how_to_come_back(sylph: Sylph, model: Model) -> None:
    await model([say("I am Sylph.")])
    chat = await sylph.open("chat")
    await chat.see("openai/scripted · mode ask ·")
    await chat.see("/help")
    chat.type("hello\r")
    await chat.see("1 round")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    (session,) = (await sylph.run("session", "list", "--json")).json
    await chat.see(f"sylph resume {session['id']}")


async def test_a_dry_run_shows_in_the_prompt(sylph: Sylph, model: Model) -> None:
    await model([call("write", path="a.txt", content="x"), say("Would.")])
    chat = await sylph.open("chat", "--dry-run")
    await chat.see("dry run> ")
    chat.type("write it\r")
    await chat.see("▸ would write  a.txt  not done: dry run")
    await chat.see("dry run: nothing was changed")
    chat.type(CTRL_D)
    assert await chat.end() == 0


async def test_what_comes_from_elsewhere_is_shown_with_its_question(sylph: Sylph, model: Model) -> None:
    await model([say("One."), say("Two."), say("Three.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("first\r")
    await chat.see("1 round")
    await sylph.run("-s", "last", "the other question")
    chat.type("third\r")
    await chat.see("Three.")
    await chat.see("1 round", times=3)
    assert chat.text.index("> the other question (from elsewhere)") < chat.text.index("Two.")
    chat.type(CTRL_D)
    assert await chat.end() == 0


async def test_a_retry_shows_its_question(sylph: Sylph, model: Model) -> None:
    await model([fail(400, "bad day"), say("Better now.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("say it\r")
    await chat.see("→ /retry")
    chat.type("/retry\r")
    await chat.see("> say it (once more)")
    await chat.see("Better now.")
    await chat.see("1 round", times=2)
    chat.type(CTRL_D)
    assert await chat.end() == 0


async def test_a_stopped_answer_is_not_said_again_in_the_next(sylph: Sylph, model: Model) -> None:
    await model([begin("one two three four five six"), say("Hello there.", delay=0.1)])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("count\r")
    await chat.see("one two")
    chat.type("/follow greet\r")
    await chat.see("queued: it is heard")
    chat.type(CTRL_C)
    await chat.see("1 round")
    await chat.see("10 tokens in")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert (await sylph.run("task", "list", "--json")).json[0]["answer"] == "Hello there."
    assert "Hello there.Hello" not in chat.text


async def test_a_key_typed_twice_is_not_sent(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command=f"touch made; {waiting('go')}"), say("Done.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("wait\r")
    await chat.see("[y] yes")
    chat.type("y\r")
    chat.type("y\r")
    await chat.see("this was not sent")
    (sylph.workspace / "go").touch()
    await chat.see("2 rounds")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert all("wait" in request.users[0] for request in server.requests)


async def test_ctrl_c_stops_the_turn_and_not_the_chat(sylph: Sylph, model: Model) -> None:
    await model([begin("one two three four five six seven"), say("Still here.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("count\r")
    await chat.see("one two")
    chat.type(CTRL_C)
    await chat.see("stopped")
    chat.type("are you there?\r")
    await chat.see("Still here.")
    await chat.see("1 round", times=2)
    chat.type(CTRL_C)
    await chat.see("once more leaves")
    chat.type(CTRL_C)
    assert await chat.end() == 0


async def test_ctrl_c_withdraws_what_the_turn_has_not_heard(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command="sleep 300"), say("A new one.")])
    chat = await sylph.open("chat", "--mode", "trust")
    await chat.see("> ")
    chat.type("wait\r")
    await chat.see("sleep 300")
    chat.type("and hurry\r")
    await chat.see("queued")
    chat.type(CTRL_C)
    await chat.see("withdrawn, not heard: and hurry")
    await chat.see("stopped")
    chat.type("again\r")
    await chat.see("A new one.")
    await chat.see("1 round", times=2)
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert not any("and hurry" in text for text in server.requests[-1].users)


async def test_earlier_versions_and_what_is_typed_lie_apart(sylph: Sylph, model: Model) -> None:
    """An older Sylph kept versions in a folder where the chat wants its file."""
    await model([say("One.")])
    home = sylph.home / "sylph"
    old = home / "history" / "soul"
    old.mkdir(parents=True)
    (old / "0001762000000000.old").write_text("You are calm.")
    (home / "SOUL.md").write_text("You are brief.")
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("hello\r")
    await chat.see("1 round")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert "+hello" in (home / "history").read_text()
    (version,) = (await sylph.run("identity", "history", "soul", "--json")).json
    assert version["id"] == "0001762000000000"
    assert (home / "versions" / "soul" / "0001762000000000.old").read_text() == "You are calm."


async def test_a_folder_of_somebody_else_in_its_place_is_told(sylph: Sylph, model: Model) -> None:
    await model([])
    folder = sylph.home / "sylph" / "history"
    (folder / "mine").mkdir(parents=True)
    chat = await sylph.open("chat")
    await chat.see("the chat keeps there what is typed")
    assert await chat.end() != 0
    assert (folder / "mine").is_dir()
    found = [one for one in (await sylph.run("doctor", "--json")).json["findings"] if "history" in one["said"]]
    assert [one["grade"] for one in found] == ["fail"]


async def test_what_is_typed_meanwhile_steers_the_turn(sylph: Sylph, model: Model) -> None:
    gate = asyncio.Event()
    server = await model([say("one two three four", hold=gate, at="stream"), say("Then in French.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("count\r")
    await chat.see("one two")
    chat.type("in French please\r")
    await chat.see("queued: it is heard")
    gate.set()
    await chat.see("Then in French.")
    await chat.see("2 rounds")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert "in French please" in server.requests[1].users[0]


async def test_an_approval_needs_an_answer(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch made"), say("Made.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("make it\r")
    await chat.see("touch made")
    await chat.see("[y] yes")
    chat.type("perhaps\r")
    await chat.see("does not answer")
    assert not (sylph.workspace / "made").exists()
    chat.type("y\r")
    await chat.see("Made.")
    await chat.see("2 rounds")
    assert (sylph.workspace / "made").exists()
    chat.type("/quit\r")
    assert await chat.end() == 0


async def test_a_no_carries_its_reason_to_the_model(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command="touch made"), say("As you like.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("make it\r")
    await chat.see("[n] no")
    chat.type("n not today\r")
    await chat.see("2 rounds")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert b"not today" in server.requests[1].body


async def test_several_lines_are_one_message(sylph: Sylph, model: Model) -> None:
    server = await model([say("Got it.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type(f"first{ALT_ENTER}second\\\rthird\r")
    await chat.see("1 round")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert server.requests[0].users[0].endswith("first\nsecond\nthird")


async def test_an_open_code_block_goes_on(sylph: Sylph, model: Model) -> None:
    server = await model([say("Got it.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("```\rx = 1\r```\r")
    await chat.see("1 round")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert server.requests[0].users[0].endswith("```\nx = 1\n```")


async def test_a_paste_is_one_message(sylph: Sylph, model: Model) -> None:
    server = await model([say("Got it.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("\x1b[200~one\ntwo\x1b[201~")
    chat.type("\r")
    await chat.see("1 round")
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert server.requests[0].users[0].endswith("one\ntwo")


async def test_slash_commands(sylph: Sylph, model: Model) -> None:
    await model([say("Hello."), say("Hello again.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    for typed, shown in (
        ("/hlep", "Did you mean 'help'?"),
        ("/help", "Summarise what is old now."),
        ("/plan", "Nothing has been said yet."),
        ("/mode plan", "plan"),
        ("hi", "1 round"),
        ("/status", "openai/scripted"),
        ("/cost", "10 tokens in"),
        ("/retry", "Hello again."),
        ("/rename a better title", "renamed: a better title"),
        ("/fork", "a fork of"),
        ("/sessions", "a better title"),
        ("/queue", "Nothing waits."),
        ("/export copy.ndjson", "written to copy.ndjson"),
        ("/new", "A new session begins"),
    ):
        chat.type(f"{typed}\r")
        await chat.see(shown)
        if typed == "/retry":
            await chat.see("1 round", times=2)
        await chat.see("> ")
    chat.type("/quit\r")
    assert await chat.end() == 0
    assert (sylph.workspace / "copy.ndjson").exists()


async def test_a_session_can_be_taken_up_again(sylph: Sylph, model: Model) -> None:
    await model([say("Noted."), say("It was blue.")])
    await sylph.run("remember blue")
    chat = await sylph.open("resume", "last")
    await chat.see("remember blue (1 turn)")
    await chat.see("> remember blue")
    await chat.see("Noted.")
    chat.type("which colour?\r")
    await chat.see("It was blue.")
    await chat.see("1 round")
    chat.type(CTRL_D)
    assert await chat.end() == 0


async def test_without_a_name_a_session_is_picked(sylph: Sylph, model: Model) -> None:
    await model([say("Noted."), say("Noted."), say("It was blue.")])
    await sylph.run("remember blue")
    await sylph.run("remember red")
    terminal = await sylph.open("session", "show")
    await terminal.see("number, text to filter")
    terminal.type("blue\r")
    await terminal.see("number, text to filter", times=2)
    terminal.type("1\r")
    await terminal.see("> remember blue")
    assert await terminal.end() == 0


async def test_lines_from_a_pipe_are_said_one_after_the_other(sylph: Sylph, model: Model) -> None:
    server = await model([say("One."), call("shell", command="touch made"), say("Two.")])
    done = await sylph.run("chat", stdin=b"first\n/cost\nsecond")
    assert (done.code, done.out) == (0, "One.\nTwo.\n")
    assert "10 tokens in" in done.err
    assert not (sylph.workspace / "made").exists()
    assert len(server.requests) == 3


async def test_a_dumb_terminal_gets_plain_lines(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch made"), say("Done.")])
    chat = await sylph.open("chat", TERM="dumb")
    await chat.see("> ")
    chat.type("do it\n")
    await chat.see("May shell run?")
    await chat.see("[n] no: ")
    chat.type("y\n")
    await chat.see("Done.")
    await chat.see("> ", times=2)
    chat.type(CTRL_D)
    assert await chat.end() == 0
    assert "\x1b[" not in chat.raw.replace("\x1b[K", "")


async def test_ctrl_c_in_a_dumb_terminal_stops_the_turn_only(sylph: Sylph, model: Model) -> None:
    await model([begin("one two three four five six"), say("Still here.")])
    chat = await sylph.open("chat", TERM="dumb")
    await chat.see("> ")
    chat.type("count\n")
    await chat.see("one two")
    chat.type(CTRL_C)
    await chat.see("stopped")
    chat.type("are you there?\n")
    await chat.see("Still here.")
    await chat.see("> ", times=3)
    chat.type(CTRL_D)
    assert await chat.end() == 0


async def test_sigterm_stops_the_turn_and_leaves(sylph: Sylph, model: Model) -> None:
    await model([begin("one two three four five six")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("count\r")
    await chat.see("one two")
    chat.process.terminate()
    assert await chat.end() == 143
    assert (await sylph.run("task", "list", "--json")).json[0]["outcome"] == "cancelled"


async def test_an_approval_of_a_task_takes_one_key(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch made"), say("Made.")])
    terminal = await sylph.open("make it")
    await terminal.see("[n] no: ")
    terminal.type("y")
    await terminal.see("Made.")
    assert await terminal.end() == 0
    assert (sylph.workspace / "made").exists()


async def test_a_spinner_tells_what_is_waited_for(sylph: Sylph, model: Model) -> None:
    gate = asyncio.Event()
    await model([say("At last.", hold=gate)])
    terminal = await sylph.open("be slow")
    await terminal.see("waiting for openai/scripted")
    gate.set()
    await terminal.see("At last.")
    assert await terminal.end() == 0


async def test_ctrl_c_in_a_terminal_ends_the_task(sylph: Sylph, model: Model) -> None:
    await model([begin("one two three four five six")])
    terminal = await sylph.open("count")
    await terminal.see("one two")
    terminal.type(CTRL_C)
    await terminal.see("stopped")
    assert await terminal.end() == 130


async def test_ctrl_c_leaves_the_tour(sylph: Sylph) -> None:
    terminal = await sylph.open("tour")
    await terminal.see("[n] no: ")
    terminal.type(CTRL_C)
    assert await terminal.end() == 130
    await terminal.see("stopped")
    assert "sylph: " not in terminal.text


async def test_a_running_call_stands_once_on_its_line(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=waiting("go")), say("Done.")])
    terminal = await sylph.open("--mode", "trust", "wait")
    await eventually(lambda: re.search(r" [1-9]\d* s", terminal.text), "a time that passes")
    await eventually(lambda: terminal.text.rstrip().rpartition("▸")[2].count("-e go") == 1, "the call, once")
    (sylph.workspace / "go").touch()
    await terminal.see("Done.")
    assert await terminal.end() == 0


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
async def test_the_screen_as_a_person_sees_it(sylph: Sylph, model: Model) -> None:
    await model([say("A first line.\nA second line."), call("list", path="."), say("Nothing there.")])
    socket = str(sylph.home / "tmux")

    async def tmux(*words: str) -> str:
        process = await asyncio.create_subprocess_exec("tmux", "-S", socket, *words, stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0].decode()

    async def shows(wanted: str) -> str:
        async def screen() -> str:
            seen = await tmux("capture-pane", "-p", "-t", "sylph")
            return seen if wanted in seen else ""

        return await eventually(screen, wanted)

    env = [part for key, value in sylph.env({}).items() if key != "TERM" for part in ("-e", f"{key}={value}")]
    size = ("-x", "80", "-y", "24", "-c", str(sylph.workspace))
    await tmux("-f", "/dev/null", "new-session", "-d", "-s", "sylph", *size, *env, SYLPH, "chat")
    try:
        await shows("openai/scripted")
        await tmux("send-keys", "-t", "sylph", "hello", "Enter")
        await shows("1 round")
        await tmux("send-keys", "-t", "sylph", "look", "Enter")
        rows = [row.rstrip() for row in (await shows("2 rounds")).splitlines()]
    finally:
        await tmux("kill-server")
    assert rows[rows.index("> hello") :][1:3] == ["A first line.", "A second line."]
    assert "▸ list  .  ✓ 0.0 s" in rows
    assert "Nothing there." in rows
