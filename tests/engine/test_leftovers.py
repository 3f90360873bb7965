"""What a killed process leaves behind: commands, journals, drafts; and what becomes of them when nobody goes on."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.engine.replays import replay_home
from tests.engine.stage import Put, bodies, outcomes, results, story
from tests.patience import eventually

from sylph.core import commands, facts
from sylph.core.events import Event
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.plugin import Plugin
from sylph.core.tool import Tool, ToolContext, ToolResult
from sylph.engine.calls.interrupted_calls import interrupted_result
from sylph.engine.commands.jobs import SessionJobs
from sylph.engine.commands.journal_reader import read_journal
from sylph.engine.commands.runner_client import RunnerClient
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.engine.turn.session import Session
from sylph.engine.turn.turn_context import TurnContext
from sylph.testing import ScriptedProvider, ScriptLine, begin_session, call_tool, play_turn, say, scripted_runtime
from sylph.tools.files import atomic_write
from sylph.tools.toolset import build_workspace_tools

TOOLS = build_workspace_tools(os.environ, PathPolicy(home=Path("/nowhere")))
SLEEPER = "echo $$ > pid; touch begun; exec sleep 300"


class Killed(BaseException):
    """Stands for a kill: whoever is here goes no further, and cleans nothing up."""


def dying(home: Path, at: str, *lines: ScriptLine) -> Runtime:
    """A runtime that is killed at a boundary."""

    def trip(boundary: str) -> None:
        if boundary == at:
            raise Killed

    gateway = ModelGateway({"scripted": ScriptedProvider(lines)}, RetryPolicy(base=0.001))
    parts = RuntimeParts(gateway=gateway, plugins=(Plugin(name="tools", tools=TOOLS),), crash_hook=trip)
    return Runtime(EventLog.open(home / "data" / "sylph.db"), parts)


def at_work(engine: Runtime, session: str) -> "tuple[Session, asyncio.Task[None]]":
    opened = engine._sessions.get(session)  # pyright: ignore[reportPrivateUsage]
    assert opened
    work = opened._work  # pyright: ignore[reportPrivateUsage]
    assert work
    return opened, work


async def killed(home: Path, at: str, *lines: ScriptLine) -> str:
    """A session whose process was killed at a boundary."""
    engine = dying(home, at, *lines)
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="go"))
    _, work = at_work(engine, session)
    await asyncio.wait([work])
    assert isinstance(work.exception(), Killed)
    await engine.close()
    return session


async def left_running(home: Path, *lines: ScriptLine) -> str:
    """A session whose process is gone while a command of it runs."""
    engine = scripted_runtime(home, lines, tools=TOOLS)
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="go"))
    await there(home / "begun")
    await let_go(engine, session)
    return session


async def let_go(engine: Runtime, session: str) -> None:
    """Ends a process the way a kill does: nothing it has started hears of it."""
    opened, work = at_work(engine, session)
    runner = engine.executor.runner
    runner.stop_command = lambda key, why="stopped": None  # noqa: ARG005 - nobody is there to say so
    opened._closing = True  # pyright: ignore[reportPrivateUsage]
    work.cancel()
    await asyncio.wait([work])
    await engine.close()


async def there(path: Path) -> None:
    await eventually(path.exists, path.name)


def runs(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "data" / "runs").iterdir())


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid: int) -> bool:
    return await eventually(lambda: not lives(pid), "the end of a process")


async def dropped(home: Path, session: str) -> list[Event]:
    async with scripted_runtime(home, [], tools=TOOLS) as engine:
        await engine.send(session, commands.AbandonTurn())
        return await story(engine, session)


async def test_dropping_a_turn_ends_its_command_and_writes_down_how(home: Path) -> None:
    session = await left_running(home, call_tool("shell", command=SLEEPER))
    pid = int((home / "pid").read_text())
    assert lives(pid)
    events = await dropped(home, session)
    assert [(each.ok, each.exit) for each in results(events)] == [(False, 128 + signal.SIGTERM)]
    assert await gone(pid)
    assert runs(home) == []


async def test_a_command_that_ignores_being_asked_is_ended_all_the_same(home: Path) -> None:
    session = await left_running(home, call_tool("shell", command="trap '' TERM; " + SLEEPER))
    pid = int((home / "pid").read_text())
    events = await dropped(home, session)
    assert await gone(pid)
    assert [each.exit for each in results(events)] == [128 + signal.SIGKILL]


async def test_a_command_that_had_ended_has_its_true_result_though_the_turn_is_dropped(home: Path) -> None:
    session = await left_running(home, call_tool("shell", command="touch begun; sleep 0.2; echo all; exit 4"))
    kept = home / "data" / "runs" / f"{session}.t1_c1.run"
    await eventually(lambda: read_journal(kept).ended, "the end of the command")
    (result,) = results(await dropped(home, session))
    assert (result.exit, result.output) == (4, "all\n[exit 4]")
    assert runs(home) == []


async def test_a_background_job_of_a_dropped_turn_goes_on(home: Path) -> None:
    session = await left_running(
        home,
        call_tool("job", action="start", command="sleep 300"),
        call_tool("shell", command="touch begun; sleep 300"),
    )
    await dropped(home, session)
    jobs = SessionJobs(RunnerClient(home / "data" / "runs"), session)
    (job,) = jobs.all()
    assert job.state == "running"
    await jobs.stop(job.id)


@pytest.mark.parametrize("at", ["effect before", "effect after"])
async def test_a_file_tells_what_became_of_it_when_its_turn_is_dropped(home: Path, at: str) -> None:
    session = await killed(home, at, call_tool("write", path="a.txt", content="new\n"))
    draft = atomic_write.draft_path(home / "a.txt", f"{session}.t1_c1")
    draft.write_text("half")
    (result,) = results(await dropped(home, session))
    assert not draft.exists()
    if at == "effect after":
        assert (result.ok, "was made before" in result.output) == (True, True)
    else:
        assert result.trouble
        assert (result.ok, result.trouble.kind) == (False, "no_effect")


async def test_a_journal_that_was_not_forgotten_is_removed_when_the_turn_is_resumed(home: Path) -> None:
    session = await killed(home, "effect told", call_tool("shell", command="echo hi"))
    assert runs(home) == [f"{session}.t1_c1.out", f"{session}.t1_c1.run"]
    async with scripted_runtime(home, [say("Done.")], tools=TOOLS) as engine:
        await play_turn(engine, session, commands.Continue())
    assert runs(home) == []


async def test_a_background_job_whose_runner_was_killed_is_told_as_lost_and_ended(home: Path) -> None:
    lines = [call_tool("job", action="start", command="echo $$ > pid; exec sleep 300"), say("Started.")]
    async with scripted_runtime(home, lines, tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "go")
        await eventually(lambda: (home / "pid").exists() and (home / "pid").read_text(), "its number")
        kept = read_journal(home / "data" / "runs" / f"{session}.t1_c1.run")
        assert kept.intent
        os.kill(kept.intent.runner, signal.SIGKILL)
    pid = int((home / "pid").read_text())
    await eventually(lambda: not kept.runner_alive, "the end of the runner")
    looking = SessionJobs(RunnerClient(home / "data" / "runs"), session, ends_lost=False)
    assert [(job.state, lives(pid)) for job in looking.all()] == [("lost", True)]
    async with scripted_runtime(home, [call_tool("job", action="list"), say("Lost.")], tools=TOOLS) as engine:
        events = await play_turn(engine, session, "how is it?")
    assert "lost: its runner died" in results(events)[0].output
    assert await gone(pid)


async def test_a_turn_that_is_given_up_after_too_many_tries_ends_its_command(home: Path) -> None:
    session = await left_running(home, call_tool("shell", command=SLEEPER))
    pid = int((home / "pid").read_text())
    for _ in range(3):
        engine = scripted_runtime(home, [], tools=TOOLS)
        await engine.send(session, commands.Continue())
        await asyncio.sleep(0.1)
        await let_go(engine, session)
    assert lives(pid)
    async with scripted_runtime(home, [], tools=TOOLS) as engine:
        await engine.send(session, commands.Continue())
        events = await story(engine, session)
    assert outcomes(events) == ["interrupted"]
    assert [each.exit for each in results(events)] == [128 + signal.SIGTERM]
    assert await gone(pid)


async def test_a_file_that_is_being_written_when_the_turn_is_stopped_is_written_whole_and_told(home: Path) -> None:
    async def slowly(args: Put, context: ToolContext) -> ToolResult:
        return await asyncio.to_thread(_slow_put, args, context)

    began = threading.Event()

    def _slow_put(args: Put, context: ToolContext) -> ToolResult:
        began.set()
        time.sleep(0.2)
        (context.workspace / args.path).write_text(args.text)
        return ToolResult(text="written")

    tool = Tool(name="put", description="", args=Put, run=slowly, effect="write", recourse="by_content")
    async with scripted_runtime(
        home, [call_tool("put", path="a.txt", text="all"), say("Yes.")], tools=[tool]
    ) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await asyncio.to_thread(began.wait)
        await engine.send(session, commands.Interrupt(reason="enough"))
        events = await story(engine, session)
        await play_turn(engine, session, "go on")
    assert [(each.ok, each.output) for each in results(events)] == [(True, "written")]
    assert (outcomes(events), (home / "a.txt").read_text()) == (["cancelled"], "all")


async def test_a_turn_that_was_being_stopped_when_the_process_died_stays_stopped(home: Path) -> None:
    session = await left_running(home, call_tool("shell", command="touch begun; sleep 0.1"))
    async with scripted_runtime(home, [], tools=TOOLS) as engine:
        context = TurnContext(session, engine._services)  # pyright: ignore[reportPrivateUsage]
        context.acquire_lease()
        await context.apply_trigger("cancel", interrupted_result("t1_c1", started=True))
        context.release_lease()
        await engine.send(session, commands.Continue())
        events = await story(engine, session)
    assert outcomes(events) == ["cancelled"]


async def test_an_answer_that_was_there_when_the_process_died_is_not_asked_for_again(home: Path) -> None:
    async with scripted_runtime(home, [say("The answer.")]) as engine:
        session = await begin_session(engine, home)
        events = await play_turn(engine, session, "what is it?")
    upto = next(event.seq for event in events if isinstance(event.body, facts.ModelResponded))
    cut = home / "cut"
    async with scripted_runtime(cut, [say("Another answer.")]) as engine:
        log = EventLog.open(home / "data" / "sylph.db")
        await engine.log.install_records(log.read_records(session, limit=upto), ())
        log.close()
        await engine.send(session, commands.Continue())
        events = await story(engine, session)
    assert outcomes(events) == ["finished"]
    assert [each.text for each in bodies(events, facts.ModelResponded)] == ["The answer."]
    await asyncio.to_thread(replay_home, cut, [engine.parts])


async def test_a_command_whose_runner_dies_as_the_turn_is_stopped_is_ended_all_the_same(home: Path) -> None:
    async with scripted_runtime(home, [call_tool("shell", command=SLEEPER)], tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await there(home / "begun")
        kept = read_journal(home / "data" / "runs" / f"{session}.t1_c1.run")
        assert kept.intent
        os.kill(kept.intent.runner, signal.SIGKILL)
        await engine.send(session, commands.Interrupt(reason="enough"))
        events = await story(engine, session)
    assert outcomes(events) == ["cancelled"]
    assert await gone(int((home / "pid").read_text()))
