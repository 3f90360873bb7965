"""`sylph "task"`, as a script or a pipeline uses it."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.flows.program import SYLPH, Model, Sylph, finished
from tests.model_server import begin, call, calls, fail, say
from tests.patience import PATIENCE


async def test_the_answer_is_on_stdout_and_the_rest_on_stderr(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("one\n")
    await model([calls(("read", {"path": "a.txt"}), text="Let me look."), say("It says one.")])
    done = await sylph.run("what is in a.txt?")
    assert (done.code, done.out) == (0, "It says one.\n")
    assert "Let me look." in done.err
    assert "▸ read  a.txt  ✓" in done.err


async def test_words_need_no_quotes(sylph: Sylph, model: Model) -> None:
    server = await model([say("Yes.")])
    await sylph.run("is", "it", "so")
    assert server.requests[0].users[0].endswith("is it so")


async def test_quiet_says_nothing_but_the_answer(sylph: Sylph, model: Model) -> None:
    await model([call("list", path="."), say("Empty.")])
    done = await sylph.run("-q", "look")
    assert (done.out, done.err) == ("Empty.\n", "")


async def test_stdin_is_added_to_the_task(sylph: Sylph, model: Model) -> None:
    server = await model([say("A list.")])
    await sylph.run("explain", stdin=b"eggs\nmilk\n")
    assert server.requests[0].users[0].endswith("explain\n\n<stdin>\neggs\nmilk\n</stdin>")


async def test_stdin_alone_is_the_task(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    done = await sylph.run(stdin=b"say hello\n")
    assert done.out == "Hello.\n"
    assert server.requests[0].users[0].endswith("say hello")


async def test_what_is_not_text_is_refused(sylph: Sylph, model: Model) -> None:
    await model([])
    done = await sylph.run("explain", stdin=b"\xff\x00\x01")
    assert done.code == 2
    assert "not text" in done.err


async def test_too_much_on_stdin_is_refused(sylph: Sylph, model: Model) -> None:
    await model([])
    done = await sylph.run("explain", stdin=b"x" * 1_100_000)
    assert done.code == 2
    assert "more on stdin than a task can hold: 1 MB" in done.err


async def test_without_a_terminal_every_question_is_answered_with_no(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch made"), say("I could not.")])
    done = await sylph.run("make it")
    assert done.code == 3
    assert not (sylph.workspace / "made").exists()
    assert "no terminal to ask on" in done.err


async def test_a_question_to_the_user_is_not_waited_for(sylph: Sylph, model: Model) -> None:
    question = {"question": "Which?", "choices": ["red", "blue"], "free_text": False}
    await model([call("ask_user", questions=[question]), say("Then red.")])
    done = await sylph.run("choose")
    assert (done.code, done.out) == (3, "Then red.\n")
    assert "1 question of the model not answered: no terminal to ask on" in done.err
    assert "--mode" not in done.err


async def test_a_mode_can_allow_it(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch made; exit 3"), say("Made.")])
    done = await sylph.run("--mode", "trust", "make it")
    assert done.code == 0
    assert (sylph.workspace / "made").exists()
    assert "✗ exit 3" in done.err


async def test_a_dry_run_changes_nothing(sylph: Sylph, model: Model) -> None:
    await model([call("write", path="a.txt", content="x"), say("Would be written.")])
    done = await sylph.run("--dry-run", "--mode", "trust", "write it")
    assert done.code == 0
    assert not (sylph.workspace / "a.txt").exists()
    assert "▸ would write  a.txt  not done: dry run\n  a.txt: new file, 1 line\n  +x\n" in done.err
    assert "dry run: nothing was changed" in done.err


async def test_a_dry_run_is_over_with_its_task(sylph: Sylph, model: Model) -> None:
    await model([say("Nothing to do."), call("write", path="a.txt", content="x"), say("Written.")])
    await sylph.run("--dry-run", "--mode", "trust", "look at it")
    done = await sylph.run("-s", "last", "write it")
    assert (sylph.workspace / "a.txt").read_text() == "x"
    assert "dry run" not in done.err


async def test_another_folder(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "sub").mkdir()
    await model([call("write", path="a.txt", content="x"), say("Written.")])
    await sylph.run("-C", "sub", "--mode", "trust", "write it")
    assert (sylph.workspace / "sub" / "a.txt").read_text() == "x"


async def test_a_session_can_be_gone_on_with(sylph: Sylph, model: Model) -> None:
    server = await model([say("I am listening."), say("You said blue.")])
    await sylph.run("remember blue")
    done = await sylph.run("-s", "last", "what did I say?")
    assert done.out == "You said blue.\n"
    assert any("remember blue" in text for text in server.requests[1].users)


async def test_a_session_stays_in_its_folder(sylph: Sylph, model: Model) -> None:
    await model([say("Yes.")])
    await sylph.run("hello")
    (sylph.workspace / "sub").mkdir()
    done = await sylph.run("-s", "last", "-C", "sub", "hello")
    assert done.code == 2
    assert f"works in {sylph.workspace}, and stays there" in done.err


async def test_a_mode_that_sticks_is_told(sylph: Sylph, model: Model) -> None:
    await model([say("One."), say("Two."), say("Three.")])
    await sylph.run("one")
    changed = await sylph.run("-s", "last", "--mode", "trust", "two")
    assert "mode is now trust for this session" in changed.err
    later = await sylph.run("-s", "last", "three")
    assert "mode is now" not in later.err
    assert later.err.rstrip().endswith("mode trust")


async def test_json_tells_a_session_from_its_first_fact(sylph: Sylph, model: Model) -> None:
    await model([say("One."), say("Two.")])
    first = (await sylph.run("--json", "one")).events
    assert (first[0]["type"], first[0]["seq"]) == ("session.created", 1)
    second = (await sylph.run("--json", "-s", "last", "--mode", "plan", "two")).events
    assert second[0]["type"] == "session.mode"


async def test_an_answer_that_was_cut_off_is_marked_as_such(sylph: Sylph, model: Model) -> None:
    await model([say("Half of", finish="length"), say("")])
    assert "cut off at the model's length limit" in (await sylph.run("-q", "x")).err
    assert "the model said nothing" in (await sylph.run("-q", "x")).err


async def test_an_address_that_is_none_is_told(sylph: Sylph) -> None:
    done = await sylph.run("hello", OPENAI_BASE_URL="foo", OPENAI_API_KEY="k")
    assert (done.code, done.out) == (2, "")
    assert "OPENAI_BASE_URL" in done.err
    assert "must be an address like" in done.err


async def test_a_service_that_is_down_is_not_taken_for_none(sylph: Sylph) -> None:
    url = "http://127.0.0.1:9/v1"
    for words in (("hello",), ()):
        done = await sylph.run(*words, OPENAI_BASE_URL=url, OPENAI_API_KEY="k")
        assert (done.code, done.out) == (4, "")
        assert f"openai at {url}: " in done.err
        assert "OPENAI_API_KEY" not in done.err


async def test_no_model_is_an_error_that_tells_what_to_do(sylph: Sylph) -> None:
    done = await sylph.run("do something")
    assert (done.code, done.out) == (4, "")
    assert "OPENAI_API_KEY" in done.err


async def test_an_unknown_model_is_answered_with_the_nearest(sylph: Sylph, model: Model) -> None:
    await model([fail(404, "The model `scriptd` does not exist", code="model_not_found")])
    done = await sylph.run("-m", "openai/scriptd", "x")
    assert done.code == 4
    assert "Did you mean openai/scripted?" in done.err


async def test_an_unknown_provider_is_answered_with_the_nearest(sylph: Sylph, model: Model) -> None:
    await model([])
    done = await sylph.run("-m", "opnai/scripted", "x")
    assert done.code == 4
    assert "Did you mean 'openai/scripted'?" in done.err


async def test_a_model_without_its_provider_is_answered_with_it(sylph: Sylph, model: Model) -> None:
    await model([])
    assert "Did you mean 'openai/scripted'?" in (await sylph.run("-m", "scripted", "x")).err


async def test_a_refused_key_ends_with_the_code_for_no_model(sylph: Sylph, model: Model) -> None:
    await model([fail(401, "bad key")])
    done = await sylph.run("-m", "openai/scripted", "x")
    assert done.code == 4
    assert "bad key" in done.err


async def test_a_retry_is_told(sylph: Sylph, model: Model) -> None:
    await model([fail(500, "boom"), say("Better now.")])
    done = await sylph.run("x")
    assert done.out == "Better now.\n"
    assert "boom; trying again in" in done.err


async def test_a_spent_budget_has_its_own_code(sylph: Sylph, model: Model) -> None:
    await model([call("list", path="."), call("list", path=".", depth=2), say("never")])
    await sylph.run("config", "set", "limits.rounds", "1")
    done = await sylph.run("x")
    assert done.code == 6


async def test_control_characters_do_not_reach_the_terminal(sylph: Sylph, model: Model) -> None:
    await model([say("a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\u202ee")])
    done = await sylph.run("be hostile")
    assert done.out == "abcde\n"


async def test_ctrl_c_ends_the_turn_cleanly(sylph: Sylph, model: Model) -> None:
    server = await model([begin("never all of it")])
    process = await sylph.start("slowly")
    await server.until(lambda: bool(server.requests))
    process.send_signal(signal.SIGINT)
    done = await finished(process)
    assert done.code == 130
    assert (await sylph.run("task", "list", "--json")).json[0]["outcome"] == "cancelled"


async def test_sigterm_ends_the_turn_cleanly(sylph: Sylph, model: Model) -> None:
    server = await model([begin("never all of it")])
    process = await sylph.start("slowly")
    await server.until(lambda: bool(server.requests))
    process.send_signal(signal.SIGTERM)
    done = await finished(process)
    assert done.code == 143
    assert (await sylph.run("task", "list", "--json")).json[0]["outcome"] == "cancelled"


async def test_a_closed_stdout_ends_the_turn_without_a_traceback(sylph: Sylph, model: Model) -> None:
    gate = asyncio.Event()
    await model([say("many words " * 50, hold=gate, at="stream")])
    process = await sylph.start("--json", "speak up")
    assert process.stdout and process.stderr
    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]
    gate.set()
    async with asyncio.timeout(PATIENCE):
        code = await process.wait()
    assert code == 141
    assert await process.stderr.read() == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
async def test_closed_streams_do_no_harm(sylph: Sylph, model: Model, closed: str) -> None:
    await model([say("Hello.")])
    process = await asyncio.create_subprocess_shell(
        f"{SYLPH} say hello {closed}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=sylph.workspace,
        env=sylph.env({}),
    )
    done = await finished(process)
    assert (done.code, done.out) == (0, "" if ">&-" in closed.replace("2>&-", "") else "Hello.\n")
    assert "Traceback" not in done.err


async def test_an_output_that_takes_no_more(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    process = await asyncio.create_subprocess_shell(
        f"{SYLPH} say hello > /dev/full", stderr=asyncio.subprocess.PIPE, cwd=sylph.workspace, env=sylph.env({})
    )
    _, err = await process.communicate()
    assert process.returncode == 1
    assert b"sylph: The output: No space left on device." in err
    assert b"Traceback" not in err


async def test_a_killed_turn_is_named_and_can_be_finished(sylph: Sylph, model: Model) -> None:
    server = await model([begin("never all of it"), say("Hello."), say("Here is the answer.")])
    process = await sylph.start("a long task")
    await server.until(lambda: bool(server.requests))
    process.kill()
    await finished(process)
    other = await sylph.run("say hello")
    session = (await sylph.run("status", "--json")).json["interrupted"][0]["session"]
    assert f"interrupted: a long task → sylph resume {session} (or --drop)" in other.err
    resumed = await sylph.run("resume", session)
    assert (resumed.code, resumed.out) == (0, "Here is the answer.\n")
    again = await sylph.run("resume", session)
    assert again.code == 2
    assert "no interrupted turn" in again.err


async def test_another_process_on_the_session_is_told(sylph: Sylph, model: Model) -> None:
    server = await model([begin("at work"), say("no")])
    process = await sylph.start("a long task")
    await server.until(lambda: bool(server.requests))
    done = await sylph.run("-s", "last", "another task")
    process.terminate()
    await finished(process)
    assert done.code == 5


async def test_a_store_that_cannot_be_opened_has_its_own_code(sylph: Sylph, model: Model, tmp_path: Path) -> None:
    await model([say("never")])
    (tmp_path / "file").write_text("")
    done = await sylph.run("x", SYLPH_DATA=str(tmp_path / "file"))
    assert done.code == 7


async def test_a_mistyped_command_is_no_task(sylph: Sylph) -> None:
    done = await sylph.run("sesion")
    assert done.code == 2
    assert "Did you mean 'session'?" in done.err
    assert 'sylph run "sesion"' in done.err


async def test_an_error_as_json(sylph: Sylph) -> None:
    done = await sylph.run("--json", "do it")
    assert done.code == 4
    assert done.json["error"]["kind"] == "no_model"


async def test_names_that_are_not_unicode_do_no_harm(sylph: Sylph, model: Model) -> None:
    await model([say("Fine.")])
    done = await sylph.run(os.fsdecode(b"caf\xe9 please"))
    assert done.out == "Fine.\n"


async def test_a_command_that_takes_too_much_memory_is_ended(sylph: Sylph, model: Model) -> None:
    await sylph.run("config", "set", "limits.command_memory", "100")
    hungry = "python3 -c 'import time; kept = bytearray(300_000_000); time.sleep(300)'"
    server = await model([call("shell", command=hungry), say("Too much.")])
    done = await sylph.run("--mode", "trust", "eat")
    assert done.code == 0, done.err
    assert "it used too much memory" in str(server.requests[1].json["messages"][-1])
