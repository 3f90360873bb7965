"""The ways a secret can take: each has canaries of its own go through a turn."""

import shlex
from collections.abc import Awaitable, Callable

import msgspec

from sylph.core import commands
from sylph.core.errors import ProviderError
from sylph.core.provider import ModelReply, ModelRequest
from sylph.engine.redact.input_history import InputHistory
from sylph.engine.runtime.runtime import Runtime
from sylph.features.prove.secrets.canaries import CanarySet
from sylph.features.prove.secrets.leak_harness import LeakHarness
from sylph.testing import call_tool, call_tools, say

LeakPath = Callable[[LeakHarness, Runtime, str, CanarySet], Awaitable[None]]
DONE_REPLY = say("Done.")


def last_tool_output(request: ModelRequest) -> str:
    """What the newest call came to."""
    return next(message.text for message in reversed(request.messages) if message.role == "tool")


def _write_canaries(stage: LeakHarness, each: CanarySet, name: str) -> str:
    (stage.work / name).write_text(each.text)
    return name


async def try_command_output(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(
        engine, session, call_tool("shell", command=f"cat {_write_canaries(stage, each, 'command.txt')}"), DONE_REPLY
    )


async def try_file_read(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(engine, session, call_tool("read", path=_write_canaries(stage, each, "read.txt")), DONE_REPLY)


async def try_search(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(
        engine, session, call_tool("grep", pattern=".", path=_write_canaries(stage, each, "search.txt")), DONE_REPLY
    )


async def try_long_output(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """So long that the model sees only its beginning and its end; the whole is kept, and read again."""
    filler = "\n".join(f"line {number} of many" for number in range(3000))
    (stage.work / "long.txt").write_text(f"{each.text}{filler}\n{each.text}{filler}\n{each.text}")
    again = call_tool("read", path="output:t4_c1", offset=3000, limit=100)
    await stage.play_turn(engine, session, call_tool("shell", command="cat long.txt"), again, DONE_REPLY)


async def try_web_page(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    stage.page = each.text
    await stage.play_turn(engine, session, call_tool("fetch", url=stage.site_url("page")), DONE_REPLY)


async def try_message(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(engine, session, DONE_REPLY, said=each.text)


async def try_input_history(stage: LeakHarness, engine: Runtime, _: str, each: CanarySet) -> None:
    """The chat keeps what is typed for its arrow keys: messages, and what follows a slash."""
    typed = InputHistory(stage.data / "history", engine.redactor)
    typed.append(each.text)
    for row in each.text.splitlines():
        typed.append(f"/rename {row}")
    assert len(typed.load_entries()) > len(each.values), "not all that was typed was kept"


async def try_answer(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """The model knows them from elsewhere, and says so."""
    assert await stage.play_turn(engine, session, say(each.text)) == each.text


async def try_reasoning(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(engine, session, ModelReply(text="Done.", finish="stop", reasoning=each.text))


async def try_native_reply(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """In an answer as its service told it, which goes back unchanged or not at all."""
    items = msgspec.json.encode([{"type": "text", "text": f"line\n{each.text}"}]).decode()
    await stage.play_turn(engine, session, ModelReply(text="Done.", finish="stop", native=items))
    await stage.play_turn(engine, session, DONE_REPLY)


async def try_restored_answer(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """The model repeats what it saw; the person reads the values, also where a placeholder came in pieces."""
    told = await stage.play_turn(
        engine,
        session,
        call_tool("read", path=_write_canaries(stage, each, "told.txt")),
        lambda request: say(last_tool_output(request)),
    )
    assert all(value in told for _, value in each.labelled_values), "not all values came back in the answer"


async def try_written_file(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(engine, session, call_tool("write", path="written.txt", content=each.text), DONE_REPLY)
    assert (stage.work / "written.txt").read_text() == each.text, "the file is not what was written"


async def try_copied_file(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """The model writes what it saw into another file: there the values are."""
    await stage.play_turn(
        engine,
        session,
        call_tool("read", path=_write_canaries(stage, each, "original.txt")),
        lambda request: call_tool("write", path="copy.txt", content=last_tool_output(request)),
        DONE_REPLY,
    )
    assert (stage.work / "copy.txt").read_text() == each.text, "the copy is not what the original is"


async def try_edited_file(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    name = _write_canaries(stage, each, "edited.txt")

    def edit(request: ModelRequest) -> ModelReply:
        rows = [row for row in last_tool_output(request).splitlines() if "⟦secret:" in row]
        return call_tool("multi_edit", path=name, edits=[{"old": row, "new": f"# {row}"} for row in rows[:13]])

    await stage.play_turn(engine, session, call_tool("read", path=name), edit, DONE_REPLY)
    now = (stage.work / name).read_text()
    assert now.replace("# ", "") == each.text != now, "the edit has changed a value"


async def try_file_names(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """In the names of files; and an undo finds them."""
    rows = [row for row in each.text.splitlines() if "/" not in row and row.startswith(("the ", "DB_"))]
    touch = f"touch {' '.join(map(shlex.quote, rows))}"
    await stage.play_turn(
        engine, session, call_tools(("shell", {"command": touch}), ("list", {"path": "."})), DONE_REPLY
    )
    await engine.send(session, commands.Undo())
    assert not any((stage.work / row).exists() for row in rows), "not all files were found again by their names"


async def try_tool_errors(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """In what a tool complains of, and in the trace of one that crashes."""
    stage.crash = each.text
    await stage.play_turn(
        engine, session, call_tool("read", path=f"missing {each.text}"), call_tool("crash"), DONE_REPLY
    )


async def try_provider_failure(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(engine, session, ProviderError("overloaded", f"Busy: {each.text}"), DONE_REPLY)


async def try_background_job(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """What a job prints lies on the disk for as long as the session does."""
    start = f"cat {_write_canaries(stage, each, 'job.txt')}; : {shlex.quote(each.text)}"

    def wait(request: ModelRequest) -> ModelReply:
        return call_tool("job", action="wait", id=last_tool_output(request).split()[2].rstrip("."))

    await stage.play_turn(engine, session, call_tool("job", action="start", command=start), wait, DONE_REPLY)


async def try_notification(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    before = len(stage.posted)
    await stage.play_turn(engine, session, call_tool("notify", title="Look", text=each.text[:4000]), DONE_REPLY)
    assert len(stage.posted) > before, "no notification was sent"


async def try_question(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await stage.play_turn(
        engine, session, call_tool("ask_user", questions=[{"question": each.text}]), DONE_REPLY, answer=each.text
    )


async def try_approval(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    await engine.send(session, commands.SetMode(mode="ask"))
    line = f"printf %s {shlex.quote(each.text)} > approved.txt"
    await stage.play_turn(engine, session, call_tool("shell", command=line), DONE_REPLY, answer="yes")
    await engine.send(session, commands.SetMode(mode="trust"))
    assert (stage.work / "approved.txt").read_text() == each.text, "the command got something else"


async def try_undo_contents(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """What an undo brings back was kept meanwhile, and is the same to the byte."""
    name = _write_canaries(stage, each, "undone.txt")
    await stage.play_turn(engine, session, call_tool("shell", command=f"echo gone > {name}"), DONE_REPLY)
    await engine.send(session, commands.Undo())
    assert (stage.work / name).read_text() == each.text, "the file did not come back"


async def try_project_notes(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    """In the project's own notes, which every session is told."""
    (stage.work / "AGENTS.md").write_text(each.text)
    await stage.play_turn(engine, session, DONE_REPLY)
    await stage.play_turn(engine, session, DONE_REPLY)


async def try_summary(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    stage.model.add_lines(*[say(f"A summary that is long enough to count as one. {each.text}")] * 3)
    await engine.send(session, commands.Compact())
    stage.model.drop_lines()
    await stage.play_turn(engine, session, DONE_REPLY)


async def try_fork(stage: LeakHarness, engine: Runtime, session: str, each: CanarySet) -> None:
    fork = await engine.fork_session(session)
    await stage.play_turn(engine, fork, call_tool("read", path=_write_canaries(stage, each, "forked.txt")), DONE_REPLY)


LEAK_PATHS: dict[str, LeakPath] = {
    "output of a command": try_command_output,
    "a file that is read": try_file_read,
    "a search": try_search,
    "an output too long to show": try_long_output,
    "a web page": try_web_page,
    "a message of the person": try_message,
    "lines typed in the chat": try_input_history,
    "an answer of the model": try_answer,
    "its reasoning": try_reasoning,
    "an answer in its service's own words": try_native_reply,
    "given back in an answer, in pieces": try_restored_answer,
    "written by the model": try_written_file,
    "copied by the model": try_copied_file,
    "edited by the model": try_edited_file,
    "names of files": try_file_names,
    "errors and crashes": try_tool_errors,
    "a failure of the model's service": try_provider_failure,
    "a background job": try_background_job,
    "a notification": try_notification,
    "a question and its answer": try_question,
    "an approval": try_approval,
    "contents kept for undo": try_undo_contents,
    "notes of the project": try_project_notes,
    "a summary": try_summary,
    "a fork": try_fork,
}
