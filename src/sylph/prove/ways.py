"""The ways a secret can take: each has canaries of its own go through a turn."""

import shlex
from collections.abc import Awaitable, Callable

import msgspec

from sylph.core import commands
from sylph.core.errors import ProviderError
from sylph.core.provider import Reply, Request
from sylph.engine.redact.typed import Typed
from sylph.engine.runtime import Runtime
from sylph.prove.canaries import Canaries
from sylph.prove.stage import Stage
from sylph.testing import call, calls, say

Way = Callable[[Stage, Runtime, str, Canaries], Awaitable[None]]
DONE = say("Done.")


def seen(request: Request) -> str:
    """What the newest call came to."""
    return next(message.text for message in reversed(request.messages) if message.role == "tool")


def _file(stage: Stage, each: Canaries, name: str) -> str:
    (stage.work / name).write_text(each.text)
    return name


async def command(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, call("shell", command=f"cat {_file(stage, each, 'command.txt')}"), DONE)


async def read(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, call("read", path=_file(stage, each, "read.txt")), DONE)


async def search(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, call("grep", pattern=".", path=_file(stage, each, "search.txt")), DONE)


async def long(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """So long that the model sees only its beginning and its end; the whole is kept, and read again."""
    filler = "\n".join(f"line {number} of many" for number in range(3000))
    (stage.work / "long.txt").write_text(f"{each.text}{filler}\n{each.text}{filler}\n{each.text}")
    again = call("read", path="output:t4_c1", offset=3000, limit=100)
    await stage.play(engine, session, call("shell", command="cat long.txt"), again, DONE)


async def page(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    stage.page = each.text
    await stage.play(engine, session, call("fetch", url=stage.url("page")), DONE)


async def message(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, DONE, said=each.text)


async def recalled(stage: Stage, engine: Runtime, _: str, each: Canaries) -> None:
    """The chat keeps what is typed for its arrow keys: messages, and what follows a slash."""
    typed = Typed(stage.data / "history", engine.veil)
    typed.keep(each.text)
    for row in each.text.splitlines():
        typed.keep(f"/rename {row}")
    assert len(typed.texts()) > len(each.values), "not all that was typed was kept"


async def answer(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """The model knows them from elsewhere, and says so."""
    assert await stage.play(engine, session, say(each.text)) == each.text


async def thought(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, Reply(text="Done.", finish="stop", reasoning=each.text))


async def native(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """In an answer as its service told it, which goes back unchanged or not at all."""
    items = msgspec.json.encode([{"type": "text", "text": f"line\n{each.text}"}]).decode()
    await stage.play(engine, session, Reply(text="Done.", finish="stop", native=items))
    await stage.play(engine, session, DONE)


async def given_back(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """The model repeats what it saw; the person reads the values, also where a placeholder came in pieces."""
    told = await stage.play(
        engine, session, call("read", path=_file(stage, each, "told.txt")), lambda request: say(seen(request))
    )
    assert all(value in told for _, value in each.all), "not all values came back in the answer"


async def written(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, call("write", path="written.txt", content=each.text), DONE)
    assert (stage.work / "written.txt").read_text() == each.text, "the file is not what was written"


async def copied(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """The model writes what it saw into another file: there the values are."""
    await stage.play(
        engine,
        session,
        call("read", path=_file(stage, each, "original.txt")),
        lambda request: call("write", path="copy.txt", content=seen(request)),
        DONE,
    )
    assert (stage.work / "copy.txt").read_text() == each.text, "the copy is not what the original is"


async def edited(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    name = _file(stage, each, "edited.txt")

    def edit(request: Request) -> Reply:
        rows = [row for row in seen(request).splitlines() if "⟦secret:" in row]
        return call("multi_edit", path=name, edits=[{"old": row, "new": f"# {row}"} for row in rows[:13]])

    await stage.play(engine, session, call("read", path=name), edit, DONE)
    now = (stage.work / name).read_text()
    assert now.replace("# ", "") == each.text != now, "the edit has changed a value"


async def named(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """In the names of files; and an undo finds them."""
    rows = [row for row in each.text.splitlines() if "/" not in row and row.startswith(("the ", "DB_"))]
    touch = f"touch {' '.join(map(shlex.quote, rows))}"
    await stage.play(engine, session, calls(("shell", {"command": touch}), ("list", {"path": "."})), DONE)
    await engine.send(session, commands.Undo())
    assert not any((stage.work / row).exists() for row in rows), "not all files were found again by their names"


async def failed(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """In what a tool complains of, and in the trace of one that crashes."""
    stage.crash = each.text
    await stage.play(engine, session, call("read", path=f"missing {each.text}"), call("crash"), DONE)


async def refused(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, ProviderError("overloaded", f"Busy: {each.text}"), DONE)


async def background(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """What a job prints lies on the disk for as long as the session does."""
    start = f"cat {_file(stage, each, 'job.txt')}; : {shlex.quote(each.text)}"

    def wait(request: Request) -> Reply:
        return call("job", action="wait", id=seen(request).split()[2].rstrip("."))

    await stage.play(engine, session, call("job", action="start", command=start), wait, DONE)


async def notification(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    before = len(stage.posted)
    await stage.play(engine, session, call("notify", title="Look", text=each.text[:4000]), DONE)
    assert len(stage.posted) > before, "no notification was sent"


async def question(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await stage.play(engine, session, call("ask_user", questions=[{"question": each.text}]), DONE, answer=each.text)


async def approval(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    await engine.send(session, commands.SetMode(mode="ask"))
    line = f"printf %s {shlex.quote(each.text)} > approved.txt"
    await stage.play(engine, session, call("shell", command=line), DONE, answer="yes")
    await engine.send(session, commands.SetMode(mode="trust"))
    assert (stage.work / "approved.txt").read_text() == each.text, "the command got something else"


async def undone(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """What an undo brings back was kept meanwhile, and is the same to the byte."""
    name = _file(stage, each, "undone.txt")
    await stage.play(engine, session, call("shell", command=f"echo gone > {name}"), DONE)
    await engine.send(session, commands.Undo())
    assert (stage.work / name).read_text() == each.text, "the file did not come back"


async def noted(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    """In the project's own notes, which every session is told."""
    (stage.work / "AGENTS.md").write_text(each.text)
    await stage.play(engine, session, DONE)
    await stage.play(engine, session, DONE)


async def condensed(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    stage.model.say(*[say(f"A summary that is long enough to count as one. {each.text}")] * 3)
    await engine.send(session, commands.Compact())
    stage.model.forget()
    await stage.play(engine, session, DONE)


async def forked(stage: Stage, engine: Runtime, session: str, each: Canaries) -> None:
    fork = await engine.fork(session)
    await stage.play(engine, fork, call("read", path=_file(stage, each, "forked.txt")), DONE)


WAYS: dict[str, Way] = {
    "output of a command": command,
    "a file that is read": read,
    "a search": search,
    "an output too long to show": long,
    "a web page": page,
    "a message of the person": message,
    "lines typed in the chat": recalled,
    "an answer of the model": answer,
    "its reasoning": thought,
    "an answer in its service's own words": native,
    "given back in an answer, in pieces": given_back,
    "written by the model": written,
    "copied by the model": copied,
    "edited by the model": edited,
    "names of files": named,
    "errors and crashes": failed,
    "a failure of the model's service": refused,
    "a background job": background,
    "a notification": notification,
    "a question and its answer": question,
    "an approval": approval,
    "contents kept for undo": undone,
    "notes of the project": noted,
    "a summary": condensed,
    "a fork": forked,
}
