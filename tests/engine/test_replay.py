"""A recorded session is run again: what differs is found, named and shown with both sides."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.engine.replays import dialects
from tests.engine.stage import SILENCE, TOOLS, Stuck, noting, said, state, story

from sylph.core import commands, facts
from sylph.core.errors import StoreError, UserError
from sylph.core.events import Fact, encode_body
from sylph.core.plugin import Plugin
from sylph.engine.calls.executor import CallLimits
from sylph.engine.log.hash_chain import LogRecord, chain_hash, data_commitment, event_from_record
from sylph.engine.runtime.runtime import RuntimeParts
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.replay import player as replaying
from sylph.replay.player import RecordedSession, ReplayResult, load_recording, parse_recording, replay_session
from sylph.testing import begin_session, call_tool, call_tools, play_turn, say, scripted_runtime

LINES = [call_tools(("look", {"path": "a"}), ("much", {"text": "x", "times": 3})), say("Found."), say("And more.")]


@pytest.fixture
async def recorded(home: Path) -> tuple[RecordedSession, RuntimeParts]:
    """A session of two turns, and what it ran with."""
    (home / "a").write_text("hello")
    async with scripted_runtime(home, LINES, tools=TOOLS, plugins=[noting("sunny", "rainy")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "what is in a?")
        await said(engine, session, "go on")
        return load_recording(engine.log, session), engine.parts


async def again(recording: RecordedSession, parts: RuntimeParts, *, any_head: bool = False) -> ReplayResult:
    return await replay_session(recording, parts, lambda name: dialects(name, parts), any_head=any_head)


def changed(recording: RecordedSession, kind: type[Fact], change: Callable[[Fact], Fact | None]) -> RecordedSession:
    """The same recording with its first fact of a kind changed or left out, under a chain that holds."""
    records: list[LogRecord] = []
    done = False
    for record in recording.records:
        body = event_from_record(record).body
        if isinstance(body, kind) and not done:
            done, new = True, change(body)
            if new is None:
                continue
            record = record._replace(data=encode_body(new))
        record = record._replace(seq=len(records) + 1)
        before = records[-1].hash if records else b""
        records.append(record._replace(hash=chain_hash(before, record, data_commitment(record))))
    return RecordedSession(records, recording.blobs)


def other(**fields: object) -> Callable[[Fact], Fact]:
    return lambda body: msgspec.structs.replace(body, **fields)


def gone(_: Fact) -> None:
    """Leaves it out."""


async def test_everything_is_the_same_down_to_the_chain(recorded: tuple[RecordedSession, RuntimeParts]) -> None:
    recording, parts = recorded
    done = await again(recording, parts)
    assert (done.divergence, done.matched, done.prompts) == (None, len(recording.records), 3)


@pytest.mark.parametrize(
    ("kind", "change", "seq", "what"),
    [
        (facts.ToolFinished, other(output="bye"), 17, "The prompt is not the same."),
        (facts.ModelResponded, other(text="Hm."), 17, "The prompt is not the same."),
        (facts.InputReceived, other(text="what?"), 7, "The prompt is not the same."),
        (facts.ToolDecided, other(reason="because"), 11, "tool.decided is not the same."),
        (facts.ModelRequested, other(head="a-b"), 7, "The prompt's head changed: the system text and the tools"),
        (facts.TurnStarted, other(input="i9"), 3, "turn.started is not the same."),
        (facts.TurnStarted, gone, 3, "The recording has state.changed here, the replay turn.started."),
        (facts.InputReceived, other(text=" "), 2, "Send was refused: There is nothing in that message."),
    ],
)
async def test_the_first_difference_is_named(
    recorded: tuple[RecordedSession, RuntimeParts],
    kind: type[Fact],
    change: Callable[[Fact], Fact | None],
    seq: int,
    what: str,
) -> None:
    recording, parts = recorded
    found = (await again(changed(recording, kind, change), parts)).divergence
    assert found
    assert found.seq == seq
    assert found.what.startswith(what)


async def test_both_sides_are_shown(recorded: tuple[RecordedSession, RuntimeParts]) -> None:
    recording, parts = recorded
    found = (await again(changed(recording, facts.ToolDecided, other(reason="x" * 300)), parts)).divergence
    assert found
    assert found.expected
    assert found.produced
    assert found.differences[0].startswith("- data.reason: 'xxx")
    assert found.differences[1].startswith("+ data.reason: 'mode `trust`")
    assert all(len(line) < 200 for line in found.differences)


async def test_another_head_can_be_let_pass_but_nothing_else(recorded: tuple[RecordedSession, RuntimeParts]) -> None:
    recording, parts = recorded
    brief = Plugin(name="brief", sections=(lambda: "Be brief.",))
    fewer = replace(parts, plugins=(*parts.plugins, brief))
    assert (await again(recording, fewer)).divergence
    done = await again(recording, fewer, any_head=True)
    assert (done.divergence, done.other_heads) == (None, 3)
    tampered = changed(recording, facts.ModelResponded, other(text="Hm."))
    assert (await again(tampered, fewer, any_head=True)).divergence


async def test_other_settings_are_a_difference(recorded: tuple[RecordedSession, RuntimeParts]) -> None:
    recording, parts = recorded
    found = (await again(recording, replace(parts, output_limits=CallLimits(lines=1, bytes=2)))).divergence
    assert found
    assert "5 bytes in all" in str(found.differences)


async def test_what_a_recording_does_not_have_is_a_difference(
    recorded: tuple[RecordedSession, RuntimeParts], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, parts = recorded
    monkeypatch.setattr(replaying, "STALL", 0.2)
    quiet = changed(recording, facts.InputReceived, gone)
    # Nobody says anything, and yet a turn begins.
    found = (await again(quiet, parts)).divergence
    assert found
    assert found.produced is None


async def test_an_engine_that_stands_still_is_a_difference(
    recorded: tuple[RecordedSession, RuntimeParts], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, parts = recorded
    monkeypatch.setattr(replaying, "STALL", 0.2)
    silent = changed(recording, facts.ModelResponded, gone)
    found = (await again(silent, parts)).divergence
    assert found
    assert found.what == "The recording goes on with tool.called; the replay does not."


async def test_a_recording_is_replayed_up_to_every_fact(recorded: tuple[RecordedSession, RuntimeParts]) -> None:
    recording, parts = recorded
    for end in range(1, len(recording.records)):
        done = await again(RecordedSession(recording.records[:end], recording.blobs), parts)
        # What was written together is only there together.
        assert done.divergence is None or done.divergence.expected is None


async def test_a_file_is_a_recording_and_must_be_whole(home: Path) -> None:
    async with scripted_runtime(home, [say("Hello.")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "hi")
        lines = [line async for line in engine.export_session(session)]
        assert (await again(parse_recording(lines), engine.parts)).divergence is None
    with pytest.raises(StoreError):
        parse_recording([*lines[:3], *lines[4:]])


async def test_what_was_erased_cannot_be_said_again(home: Path) -> None:
    async with scripted_runtime(home, [say("Hello.")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "my word is swordfish")
        await engine.erase_secret(session, "swordfish")
        with pytest.raises(UserError, match="was erased"):
            await again(load_recording(engine.log, session), engine.parts)


async def test_a_turn_that_took_too_long_does_so_again_without_waiting(home: Path) -> None:
    for words in ("", "I am thi"):
        model = Stuck([SILENCE], words=words)
        async with scripted_runtime(home, model, limits=TurnLimits(seconds=3.0)) as engine:
            session = await begin_session(engine, home)
            await said(engine, session, "do it")
            recording = load_recording(engine.log, session)
            began = asyncio.get_running_loop().time()
            # The limit of then is in the log.
            done = await again(recording, replace(engine.parts, limits=TurnLimits()))
            assert (done.divergence, asyncio.get_running_loop().time() - began < 2.5) == (None, True)


async def test_who_changes_the_mode_while_a_preview_is_made_is_asked_all_the_same(home: Path) -> None:
    seen, go = asyncio.Event(), asyncio.Event()

    async def slow(*_: object) -> str:
        seen.set()
        await go.wait()
        return "it would"

    tool = replace(TOOLS[0], preview=slow)
    async with scripted_runtime(home, [call_tool("put", path="a"), say("Done.")], tools=[tool]) as engine:
        session = await begin_session(engine, home, mode="ask")
        playing = asyncio.create_task(play_turn(engine, session, "go"))
        await seen.wait()
        await engine.send(session, commands.SetMode(mode="trust"))
        go.set()
        await playing
        assert (await again(load_recording(engine.log, session), engine.parts)).divergence is None


async def test_who_changes_the_mode_before_the_effect_comes_too_late(home: Path) -> None:
    seen, go = asyncio.Event(), asyncio.Event()

    async def foresee(*_: object) -> dict[str, str]:
        seen.set()
        await go.wait()
        return {"it": "will"}

    tool = replace(TOOLS[0], foresee=foresee)
    async with scripted_runtime(home, [call_tool("put", path="a"), say("Done.")], tools=[tool]) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await seen.wait()
        await engine.send(session, commands.SetMode(mode="plan"))
        go.set()
        await story(engine, session)
        assert (await again(load_recording(engine.log, session), engine.parts)).divergence is None


async def test_a_close_in_the_middle_of_an_answer(home: Path) -> None:
    model = Stuck([SILENCE, say("Done.")], words="I am thi")
    engine = scripted_runtime(home, model)
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="go"))
    await model.silent.wait()
    await engine.close()
    async with scripted_runtime(home, model) as engine:
        await engine.send(session, commands.Continue())
        await state(engine, session, "finalizing")
        await story(engine, session)
        done = await again(load_recording(engine.log, session), engine.parts)
    assert (done.divergence, done.prompts) == (None, 2)
