"""A session goes out and comes in without loss, and branches anywhere."""

import json
from pathlib import Path

import pytest
from tests.engine.checks import check_log
from tests.engine.stage import TOOLS, Props, bodies, outcomes, said, story

from sylph.core import commands, facts
from sylph.core.errors import NotFound, StoreError, SylphError, UserError
from sylph.core.events import UnreadableRecord
from sylph.core.ids import new_id
from sylph.core.plugin import Plugin
from sylph.engine.calls.executor import CallLimits
from sylph.engine.folds.history import HISTORY_FOLD, ConversationHistory
from sylph.engine.log.export import ImportResult
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.testing import (
    ScriptedProvider,
    ScriptLine,
    begin_session,
    call_tool,
    call_tools,
    play_turn,
    say,
    scripted_runtime,
)


def _engine(home: Path, *lines: ScriptLine) -> Runtime:
    model = ScriptedProvider(lines)
    plugin = Plugin(name="x", tools=(*TOOLS, *Props().tools[:5]))
    parts = RuntimeParts(
        gateway=ModelGateway({"scripted": model}), plugins=(plugin,), output_limits=CallLimits(lines=5, bytes=200)
    )
    return Runtime(EventLog.open(home / "data" / "sylph.db"), parts)


async def _recorded(home: Path) -> tuple[Runtime, str]:
    """A session with calls, an approval, a whole output kept, a retry, and records that nobody can read."""
    script = [
        call_tools(("much", {"text": "line\n", "times": 99}), ("put", {"path": "a"})),
        say("Done."),
        say("Again."),
    ]
    engine = _engine(home, *script, *[say("Go on.")] * 99)
    session = await begin_session(engine, home, mode="ask")
    await play_turn(engine, session, "do it")
    await engine.send(session, commands.Retry())
    await engine.wait_until_idle(session)
    strange = [b'{"of": "sheep"}', b"\xff\x00", b' {"spaced": 1} ', b'{"line":\n1}', b""]
    drafts = [PendingFact(UnreadableRecord(type="dream.dreamt", raw=raw, why=""), 1, "", "sylph", 0) for raw in strange]
    await engine.log.append(session, drafts, expected=engine.log.head(session).seq).done
    return engine, session


async def _export(engine: Runtime, session: str) -> list[bytes]:
    return [line async for line in engine.export_session(session)]


async def test_an_export_imported_elsewhere_exports_to_the_same_bytes(home: Path, tmp_path: Path) -> None:
    engine, session = await _recorded(home)
    lines = await _export(engine, session)
    async with _engine(tmp_path / "other") as other:
        imported = await other.import_session(lines)
        assert imported == ImportResult(session, events=len(lines) - 2, blobs=1, known=False)
        assert await _export(other, session) == lines
        assert (await other.import_session(lines)).known
        assert (await other.verify_sessions(session))[0].ok
        assert await other.full_output(session, "t1_c1") == "line\n" * 99
    await engine.close()


async def test_an_import_can_be_given_a_new_id_and_a_chain_of_its_own(home: Path) -> None:
    engine, session = await _recorded(home)
    async with engine:
        copy = await engine.import_session(await _export(engine, session), new_id=True)
        assert copy.session != session
        assert (await engine.verify_sessions(copy.session))[0].ok
        assert await engine.full_output(copy.session, "t1_c1") == "line\n" * 99


async def test_a_session_that_went_on_is_not_overwritten(home: Path) -> None:
    engine, session = await _recorded(home)
    async with engine:
        lines = await _export(engine, session)
        await said(engine, session, "and then?")
        with pytest.raises(UserError, match="already a different session"):
            await engine.import_session(lines)


def _edited(lines: list[bytes], number: int, **changes: object) -> list[bytes]:
    line = json.loads(lines[number]) | changes
    return [*lines[:number], json.dumps(line, separators=(",", ":")).encode(), *lines[number + 1 :]]


async def test_a_file_that_was_changed_is_refused_and_nothing_of_it_comes_in(home: Path, tmp_path: Path) -> None:
    engine, session = await _recorded(home)
    lines = await _export(engine, session)
    await engine.close()
    tampered = {
        "data": _edited(lines, 2, data={"title": "x"}),
        "ts": _edited(lines, 2, ts=1),
        "actor": _edited(lines, 2, actor="x"),
        "hash": _edited(lines, 2, hash="00"),
        "salt": _edited(lines, 2, salt="00"),
        "not hex": _edited(lines, 2, salt="xy"),
        "blob": [*lines[:-1], lines[-1].replace(b"bGluZ", b"bGlua")],
        "foreign blob": [*lines[:-1], lines[-1].replace(session.encode(), b"another")],
        "removed": [*lines[:3], *lines[4:]],
        "swapped": [*lines[:3], lines[4], lines[3], *lines[5:]],
        "cut off": lines[:-3],
        "no blobs": lines[:-1],
        "no header": lines[1:],
        "newer": _edited(lines, 0, version=2),
        "garbage": [*lines, b"garbage\n"],
        "empty": [b"\n"],
        "a path for an id": [line.replace(session.encode(), b"../../evil") for line in lines],
    }
    async with _engine(tmp_path / "other") as other:
        for what, file in tampered.items():
            with pytest.raises(SylphError) as caught:
                await other.import_session(file)
            assert caught.value.trouble.kind in ("chain_broken", "not_an_export"), what
        assert other.log.session_ids() == []


async def test_an_id_that_would_leave_its_folder_is_refused_even_with_a_sound_chain(home: Path) -> None:
    async with _engine(home / "one") as engine, _engine(home / "two") as other:
        fact = facts.SessionRenamed(title="x")
        await engine.log.append("../../evil", [PendingFact(fact, 1, "", "user", 0)], expected=0).done
        with pytest.raises(UserError, match="cannot be the id"):
            await other.import_session(await _export(engine, "../../evil"))


async def test_numbers_that_no_store_can_keep_are_an_error_not_the_end(home: Path) -> None:
    async with _engine(home / "one") as engine:
        draft = PendingFact(facts.SessionRenamed(title="x"), 2**63, "", "user", 0)
        with pytest.raises(StoreError):
            await engine.log.append("s", [draft], expected=0).done
        assert await begin_session(engine, home)


async def test_a_fork_at_every_fact_is_a_session_that_verifies_and_goes_on(home: Path) -> None:
    engine, session = await _recorded(home)
    async with engine:
        for at in range(1, engine.log.head(session).seq + 1):
            child = await engine.fork_session(session, at=at)
            assert (await engine.verify_sessions(child))[0].ok
            events = await said(engine, child, "go on")
            check_log(events)
            assert outcomes(events)[-1] == "finished"
            assert [event.body for event in events[:at]] == [
                event.body for event in await engine.read_events(session, limit=at)
            ]


async def test_a_fork_shares_the_words_of_its_parent(home: Path) -> None:
    async with scripted_runtime(home, [say("One."), say("Two.")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "first")
        child = await engine.fork_session(session)
        await said(engine, child, "second")
        shown = [ConversationHistory(), ConversationHistory()]
        for state, id in zip(shown, (session, child), strict=True):
            for event in await engine.read_events(id):
                HISTORY_FOLD.step(state, event)
    assert shown[1].build_messages()[: len(shown[0].build_messages())] == shown[0].build_messages()


async def test_forks_know_their_family_and_what_they_spent_themselves(home: Path) -> None:
    engine, session = await _recorded(home)
    async with engine:
        child = await engine.fork_session(session, at=9)
        grandchild = await engine.fork_session(child)
        summary = await engine.find_session(grandchild)
        assert (summary.parent, summary.root, summary.forked_at) == (child, session, engine.log.head(child).seq)
        assert (summary.usage.input, summary.queue, summary.open_turn) == (0, {}, "")
        await engine.purge_session(session)
        assert await engine.full_output(grandchild, "t1_c1") is None


async def test_a_fork_in_the_middle_of_a_turn_ends_it_in_the_copy_only(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        child = await engine.fork_session(session)
        props.go.set()
        ends = [outcomes(await story(engine, id)) for id in (session, child)]
        states = bodies(await engine.read_events(child), facts.StateChanged)
    assert ends == [["finished"], ["interrupted"]]
    assert (states[-1].event, states[-1].to) == ("mend", "idle")


@pytest.mark.parametrize("at", [0, 99])
async def test_a_fork_needs_a_fact_to_start_from(home: Path, at: int) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        with pytest.raises(UserError, match="is not a fact of"):
            await engine.fork_session(session, at=at)
        with pytest.raises(NotFound):
            await engine.fork_session(new_id())
