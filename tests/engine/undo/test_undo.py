"""Undo through a session: what is written down, what comes back, what is refused, and what a crash leaves."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.engine.stage import seen
from tests.engine.undo.trees import tree_of
from tests.patience import eventually
from tests.tools.desk import PLACES

from sylph.core import commands, facts
from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.core.facts.file_change import (
    FilesChanged,
    FilesRestored,
    UndoStarted,
    decode_path,
    display_path,
    encode_path,
)
from sylph.core.provider import ModelReply, ModelRequest
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.engine.runtime.runtime import Runtime
from sylph.engine.turn.session_log import SessionLog
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.content_store import FileContentStore
from sylph.engine.undo.workspace_scan import CheckpointPolicy
from sylph.testing import ScriptLine, begin_session, call_tool, call_tools, play_turn, say, scripted_runtime
from sylph.tools.toolset import build_workspace_tools


class Named(ToolArgs, frozen=True, kw_only=True):
    path: str


async def name(args: Named, context: ToolContext) -> ToolResult:
    target = context.workspace / args.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("named\n")
    (context.workspace / "besides").write_text("x")
    return ToolResult(text="")


def judge(args: Named, context: ToolContext) -> CallAssessment:
    return CallAssessment("write", "safe", writes=(str(context.workspace / args.path),))


NAMED = Tool(name="named", description="", args=Named, run=name, effect="write", judge=judge)
RULES = CheckpointPolicy(skip=frozenset({b"node_modules", b"__pycache__"}), files=200, each=10_000)


def stage(home: Path, lines: Sequence[ScriptLine], rules: CheckpointPolicy = RULES, *tools: Tool) -> Runtime:
    return scripted_runtime(home, lines, tools=(*build_workspace_tools(dict(os.environ), PLACES), *tools), undo=rules)


@pytest.fixture
def work(home: Path) -> Path:
    folder = home / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "src" / "b.py").write_text("b = 1\n")
    (folder / "link").symlink_to("a.txt")
    return folder


def sh(command: str) -> ScriptLine:
    return call_tool("shell", command=command)


def of(events: Sequence[Event], kind: type) -> list[Event]:
    return [event for event in events if isinstance(event.body, kind)]


def changed(events: Sequence[Event]) -> dict[str, str]:
    """The paths that facts tell of, each with the call that changed it."""
    bodies = [event.body for event in events if isinstance(event.body, FilesChanged)]
    return {change.path: body.call for body in bodies for change in body.changes}


def changed_gaps(events: Sequence[Event]) -> list[str]:
    return [gap for event in events if isinstance(event.body, FilesChanged) for gap in event.body.gaps]


async def test_a_turn_comes_back_exactly_and_the_model_hears_of_it(home: Path, work: Path) -> None:
    before = tree_of(work)
    seen: list[str] = []

    def listen(request: ModelRequest) -> ModelReply:
        seen.append(str(request))
        return say("I see.")

    lines = [
        sh("echo new > a.txt; rm -r src; mkdir -p x/y; ln -sfn x link; chmod 600 a.txt"),
        call_tool("write", path="q/r.txt", content="r\n"),
        say("Done."),
        listen,
    ]
    async with stage(home, lines) as engine:
        id = await begin_session(engine, work)
        events = await play_turn(engine, id, "go")
        assert changed(events)["q/r.txt"] == "t1_c2"
        assert set(changed(events)) == {"a.txt", "src", "src/b.py", "x", "x/y", "link", "q", "q/r.txt"}
        await engine.send(id, commands.Undo())
        assert tree_of(work) == before
        await play_turn(engine, id, "what now?")
        assert "undid what t1_c1, t1_c2 had done" in seen[0]


async def test_a_redo_brings_it_back_and_an_undo_goes_further_back_each_time(home: Path, work: Path) -> None:
    trees = [tree_of(work)]
    async with stage(home, [sh("echo 1 > n"), say(""), sh("echo 2 > n; rm a.txt"), say("")]) as engine:
        id = await begin_session(engine, work)
        for text in ("first", "second"):
            await play_turn(engine, id, text)
            trees.append(tree_of(work))
        for command, expected in (
            (commands.Undo(), 1),
            (commands.Undo(redo=True), 2),
            (commands.Undo(), 1),
            (commands.Undo(), 0),
            (commands.Undo(redo=True), 1),
            (commands.Undo(redo=True), 2),
            (commands.Undo(turn="t1"), 0),
        ):
            await engine.send(id, command)
            assert tree_of(work) == trees[expected], command
        with pytest.raises(UserError, match="undone already"):
            await engine.send(id, commands.Undo())


async def test_what_somebody_else_changed_since_is_left_unless_by_force(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo x >> a.txt; echo x >> src/b.py"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        (work / "a.txt").write_text("mine\n")
        await engine.send(id, commands.Undo())
        restored = await engine.last_undo(id)
        assert restored
        assert [each.path for each in restored.left] == ["a.txt"]
        assert (work / "a.txt").read_text() == "mine\n"
        assert (work / "src" / "b.py").read_text() == "b = 1\n"
        with pytest.raises(UserError, match=r"Nothing was undone. a.txt: it was changed since by somebody else"):
            await engine.send(id, commands.Undo())
        await engine.send(id, commands.Undo(force=True))
        assert (work / "a.txt").read_text() == "one\ntwo\n"
        await engine.send(id, commands.Undo(redo=True))
        assert (work / "a.txt").read_text() == "mine\n"


async def test_only_some_files_or_back_to_a_call(home: Path, work: Path) -> None:
    lines = [sh("echo 1 > n1; echo x > a.txt"), sh("echo 2 > src/n2"), sh("echo 3 > src/n3"), say("")]
    async with stage(home, lines) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        await engine.send(id, commands.Undo(files=("*.txt",)))
        assert sorted(tree_of(work)) == ["a.txt", "link", "n1", "src", "src/b.py", "src/n2", "src/n3"]
        assert (work / "a.txt").read_text() == "one\ntwo\n"
        await engine.send(id, commands.Undo(call="t1_c3"))
        assert not (work / "src" / "n3").exists()
        await engine.send(id, commands.Undo(files=("src",)))
        assert sorted(tree_of(work)) == ["a.txt", "link", "n1", "src", "src/b.py"]
        with pytest.raises(UserError, match="nothing to undo"):
            await engine.send(id, commands.Undo(files=("nothing",)))
        for wish, said, there in (
            (commands.Undo(turn="t9"), "There is no turn t9.", "The turns there are: t1."),
            (commands.Undo(call="zz"), "There is no call zz.", "The calls there are: t1_c1, t1_c2, t1_c3."),
        ):
            with pytest.raises(UserError) as refused:
                await engine.send(id, wish)
            assert (str(refused.value), list(refused.value.trouble.next)) == (said, [there])


async def test_what_is_not_covered_is_said(home: Path, work: Path) -> None:
    (work / "node_modules").mkdir()
    (work / "big").write_bytes(b"x" * 20_000)
    command = "echo 1 > node_modules/m; echo more >> big; mkfifo pipe; mkdir __pycache__; head -c 20000 /dev/zero > new"
    async with stage(home, [sh(command), say("")]) as engine:
        id = await begin_session(engine, work)
        events = await play_turn(engine, id, "go")
        (told,) = of(events, FilesChanged)
        assert isinstance(told.body, FilesChanged)
        assert [gap.partition(":")[0] for gap in told.body.gaps] == ["big", "new", "node_modules/ changed"]
        await engine.send(id, commands.Undo())
        restored = await engine.last_undo(id)
        assert restored
        assert {each.path: each.why for each in restored.left} == {
            "big": "what it held was not kept (20,000 bytes, or it could not be read)",
            "new": "it is too large to be kept, so that no redo could bring it back",
        }
        assert sorted(tree_of(work)) == [
            "__pycache__", "a.txt", "big", "link", "new", "node_modules", "node_modules/m", "src", "src/b.py"
        ]  # fmt: skip


async def test_a_folder_with_too_many_files_is_said_once_and_named_files_are_covered(home: Path, work: Path) -> None:
    for number in range(210):
        (work / f"f{number}").touch()
    lines = [sh("rm f1"), sh("rm f2"), call_tool("named", path="a.txt"), say("")]
    async with stage(home, lines, RULES, NAMED) as engine:
        id = await begin_session(engine, work)
        events = await play_turn(engine, id, "go")
        assert changed_gaps(events) == [
            "more than 200 files: what commands change here is not covered (undo.max_files)"
        ]
        assert changed(events) == {"a.txt": "t1_c3"}


async def test_a_turn_that_is_stopped_tells_what_it_had_changed(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo x > n; echo y > a.txt; sleep 300"), say("")]) as engine:
        id = await begin_session(engine, work)
        await engine.send(id, commands.Send(text="go"))
        await eventually(lambda: (work / "a.txt").read_text() == "y\n", "the command")
        await engine.send(id, commands.Interrupt(reason="enough"))
        await engine.wait_until_idle(id)
        assert set(changed(await engine.read_events(id))) == {"n", "a.txt"}
        await engine.send(id, commands.Undo())
        assert (work / "a.txt").read_text() == "one\ntwo\n"
        assert not (work / "n").exists()


async def test_undo_is_refused_while_a_turn_runs_and_where_nothing_was_changed(home: Path, work: Path) -> None:
    async with stage(home, [sh("sleep 300"), say("")]) as engine:
        id = await begin_session(engine, work)
        with pytest.raises(UserError, match="this session changed no files"):
            await engine.send(id, commands.Undo())
        with pytest.raises(UserError, match="no undo to take back"):
            await engine.send(id, commands.Undo(redo=True))
        await engine.send(id, commands.Send(text="go"))
        await seen(engine, id, facts.TurnStarted)
        with pytest.raises(UserError, match="cannot be undone while a turn is open"):
            await engine.send(id, commands.Undo())
        await engine.send(id, commands.Interrupt())
        await engine.wait_until_idle(id)


async def test_where_undo_is_off_nothing_is_kept(home: Path, work: Path) -> None:
    async with scripted_runtime(
        home, [sh("echo x > n"), say("")], tools=build_workspace_tools(dict(os.environ), PLACES)
    ) as engine:
        id = await begin_session(engine, work)
        assert changed(await play_turn(engine, id, "go")) == {}
        with pytest.raises(UserError, match="switched off"):
            await engine.send(id, commands.Undo())
    assert not (home / "data" / "undo").exists()


async def test_a_dry_run_of_an_undo_changes_nothing_and_shows_the_difference(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo three >> a.txt; chmod +x src/b.py; printf '\\0' > bin"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        before, seq = tree_of(work), engine.log.head(id).seq
        plan, files = await engine.plan_undo(id, UndoRequest())
        assert tree_of(work) == before
        assert engine.log.head(id).seq == seq
        assert [step.path for step in plan.steps] == ["a.txt", "bin", "src/b.py"]
        assert [(each.path, each.what, each.added, each.removed) for each in files] == [
            ("a.txt", "changed", 0, 1), ("bin", "deleted", None, None), ("src/b.py", "changed", None, None)
        ]  # fmt: skip
        assert files[2].note == "mode 0755 → 0644"
        (turn,) = await engine.list_changes(id)
        assert turn.files[0].diff.splitlines()[-1] == "+three"
        assert turn.files[1].note == "binary, 1 bytes"


async def test_a_fork_can_undo_too_and_two_undos_do_not_get_in_each_others_way(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo x > a.txt"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        other = await engine.fork_session(id)
        await engine.send(other, commands.Undo())
        assert (work / "a.txt").read_text() == "one\ntwo\n"
        await engine.send(id, commands.Undo())
        assert (work / "a.txt").read_text() == "one\ntwo\n"


async def test_an_imported_session_says_what_is_missing(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo x > a.txt"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        rows = [row async for row in engine.export_session(id)]
    assert b"one" not in b"".join(rows)
    elsewhere = home / "elsewhere"
    async with stage(elsewhere, []) as engine:
        await engine.import_session(rows)
        with pytest.raises(UserError, match="what it held is not kept here"):
            await engine.send(id, commands.Undo())


async def test_an_undo_that_was_cut_off_is_finished_by_the_next_or_by_a_message(home: Path, work: Path) -> None:
    before = tree_of(work)
    lines = [sh("echo 1 > n1; echo 2 > n2; rm a.txt"), say(""), sh("rm -r src"), say(""), say("ok")]
    async with stage(home, lines) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "one")
        middle = tree_of(work)
        await play_turn(engine, id, "two")
        plan, _ = await engine.plan_undo(id, UndoRequest(turn="t2"))
        await _cut_off(engine, id, plan)
        (work / "src").mkdir()
        await engine.send(id, commands.Undo())
        assert tree_of(work) == middle
        plan, _ = await engine.plan_undo(id, UndoRequest(turn="t1"))
        await _cut_off(engine, id, plan)
        (work / "n1").unlink()
        await play_turn(engine, id, "three")
        assert tree_of(work) == before
        done = [event.body for event in of(await engine.read_events(id), FilesRestored)]
        assert [body.resumed for body in done if isinstance(body, FilesRestored)] == [True, True]


async def _cut_off(engine: Runtime, id: str, plan: UndoStarted) -> None:
    """What a kill right after the first fact of an undo leaves."""
    book = SessionLog(id, engine._services)  # pyright: ignore[reportPrivateUsage] - a process that dies
    await book.emit(plan, actor="user")


async def test_a_hostile_workspace_leads_nowhere(home: Path, work: Path) -> None:
    outside = home / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    (work / "out").symlink_to(outside)
    async with stage(home, [sh("echo x > src/b.py; echo y > src/n"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        (work / "src").rename(work / "was")
        (work / "src").symlink_to(outside)
        (outside / "b.py").write_text("x\n")
        (outside / "n").write_text("y\n")
        with pytest.raises(UserError, match=r"a link now, or gone|changed since"):
            await engine.send(id, commands.Undo())
        await engine.send(id, commands.Undo(force=True))
        restored = await engine.last_undo(id)
        assert restored
        assert [each.why for each in restored.left] == ["a folder on the way to it is a link now, or gone"]
        assert sorted(path.name for path in outside.iterdir()) == ["b.py", "n", "secret"]
        assert (outside / "b.py").read_text() == "x\n"


async def test_names_that_are_no_text_come_back(home: Path, work: Path) -> None:
    odd = work / os.fsdecode(b"\xff\xfe") / os.fsdecode(b"\xfd")
    odd.parent.mkdir()
    odd.write_text("odd\n")
    async with stage(home, [sh("rm -r ./*; mkdir -p $'new\\xff/er'"), say("")]) as engine:
        id = await begin_session(engine, work)
        events = await play_turn(engine, id, "go")
        name = encode_path(b"\xff\xfe")
        assert name in changed(events)
        assert (decode_path(name), display_path(name)) == (b"\xff\xfe", "\\xff\\xfe")
        await engine.send(id, commands.Undo())
        assert odd.read_text() == "odd\n"
        assert sorted(tree_of(work))[0] == "a.txt"
        assert len(tree_of(work)) == 6


async def test_two_calls_at_once_in_one_folder_do_not_claim_each_others_work(home: Path, work: Path) -> None:
    slow = sh("echo slow > s1; while ! [ -e go ]; do sleep 0.02; done; echo slow > s2")
    async with stage(home, [slow, sh("echo quick > q1"), say(""), say("")]) as engine:
        one, other = await begin_session(engine, work), await begin_session(engine, work)
        await engine.send(one, commands.Send(text="slow"))
        await eventually((work / "s1").exists, "the slow command")
        (work / "s1").unlink()
        await play_turn(engine, other, "quick")
        (work / "go").touch()
        await engine.wait_until_idle(one)
        assert "q1" in changed(await engine.read_events(other))
        assert "q1" not in changed(await engine.read_events(one))
        assert "s2" in changed(await engine.read_events(one))


async def test_a_tool_that_names_what_it_writes_is_watched_only_there(home: Path, work: Path) -> None:
    lines = [call_tools(("named", {"path": "deep/er/n"}), ("named", {"path": "a.txt"})), say("")]
    async with stage(home, lines, RULES, NAMED) as engine:
        id = await begin_session(engine, work)
        events = await play_turn(engine, id, "go")
        assert changed(events) == {"deep": "t1_c1", "deep/er": "t1_c1", "deep/er/n": "t1_c1", "a.txt": "t1_c2"}
        await engine.send(id, commands.Undo())
        assert not (work / "deep").exists()
        assert (work / "besides").exists()


async def test_a_purge_and_an_erasure_drop_contents(home: Path, work: Path) -> None:
    (work / "key").write_text("hunter2 is the password\n")
    async with stage(home, [sh("rm key"), say(""), sh("echo other > a.txt"), say("")]) as engine:
        id, other = await begin_session(engine, work), await begin_session(engine, work)
        await play_turn(engine, id, "one")
        await play_turn(engine, other, "two")
        kept = FileContentStore(home / "data" / "undo" / "contents")
        assert any(b"hunter2" in (kept.get(each) or b"") for each in kept.list_digests())
        assert await engine.erase_secret(id, "hunter2") >= 1
        assert not any(b"hunter2" in (kept.get(each) or b"") for each in kept.list_digests())
        with pytest.raises(UserError, match="not kept here"):
            await engine.send(id, commands.Undo())
        await engine.purge_session(id)
        await engine.send(other, commands.Undo())
        assert (work / "a.txt").read_text() == "one\ntwo\n"
        await engine.purge_session(other)
        assert not list((home / "data" / "undo" / "open").glob("*/*"))


async def test_facts_of_files_name_their_call_as_cause(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo x > n"), say("")]) as engine:
        id = await begin_session(engine, work)
        events = await play_turn(engine, id, "go")
        (told,), (called,) = of(events, FilesChanged), of(events, facts.ToolCalled)
        assert told.cause == called.seq
