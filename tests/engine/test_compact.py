"""What is old is told in fewer words: all of it, or nothing is dropped."""

from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stage import TOOLS, bodies, ended, noting, outcomes, said, story

from sylph.core import commands, facts
from sylph.core.errors import ProviderError
from sylph.core.messages import Message, Usage
from sylph.core.provider import Chunk, ModelReply, ModelRequest
from sylph.engine.folds.history import ConversationHistory, HistoryEntry
from sylph.engine.runtime.runtime import Runtime
from sylph.engine.turn import compaction
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.turn.compaction import CompactionError, CompactionLimits
from sylph.testing import ScriptedProvider, ScriptLine, begin_session, call_tool, call_tools, say, scripted_runtime

LONG = "All work and no play makes a dull boy. " * 60
BRIEF = say("Work was done, and it was said to be dull; nothing is unfinished.")
SMALL = TurnLimits(compaction_limits=CompactionLimits(at=0.5, keep=0.1))


def _summaries(model: ScriptedProvider) -> list[ModelRequest]:
    return [request for request in model.requests if "Condense" in request.system]


def _talk(model: ScriptedProvider) -> list[ModelRequest]:
    return [request for request in model.requests if "Condense" not in request.system]


def _auto(*lines: ScriptLine, window: int | None = 1_000) -> ScriptedProvider:
    """A model that condenses whatever it is asked to, and says its lines in between."""
    return _Condensing(lines, window=window)


class _Condensing(ScriptedProvider):
    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        if "Condense" in request.system:
            self._lines.insert(0, BRIEF)
        async for chunk in super().stream(request, body):
            yield chunk


async def _told(engine: Runtime, session: str, *texts: str) -> list[facts.CompactionMade]:
    for text in texts:
        await said(engine, session, text)
    return bodies(await story(engine, session), facts.CompactionMade)


async def test_a_window_that_fills_up_is_compacted_before_the_next_request(home: Path) -> None:
    model = _auto(say(LONG), say("Yes."))
    async with scripted_runtime(home, model, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        (made,) = await _told(engine, session, "Never use tabs.", "And now?")
        assert (await engine.find_session(session)).state == "idle"
    assert made.tokens_after < made.tokens_before
    assert made.words == ("Never use tabs.",)
    recap, last = _talk(model)[1].messages
    assert "Never use tabs." in recap.text
    assert "it was said to be dull" in recap.text
    assert last.text == "And now?"


@pytest.mark.parametrize(("tokens", "due"), [(750, False), (751, True)])
def test_it_is_due_at_three_quarters_of_the_window(tokens: int, due: bool) -> None:
    history = ConversationHistory(counted=tokens)
    assert compaction.needs_compaction(history, 1_000, CompactionLimits()) == due


async def test_the_provider_counts_and_is_believed(home: Path) -> None:
    model = _auto(say("Short.", usage=Usage(input=900, output=10)), say("Yes."))
    async with scripted_runtime(home, model, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "hello " * 40, "and now?")
    assert len(_summaries(model)) == 1


async def test_everything_old_reaches_the_one_who_condenses_it(home: Path) -> None:
    answers = [f"answer {number} " + "x" * 1_500 for number in range(3)]
    model = _auto(say(answers[0]), say(answers[1]), say(answers[2]), say("Yes."), window=100_000)
    async with scripted_runtime(
        home, model, limits=TurnLimits(compaction_limits=CompactionLimits(at=0.01, keep=0.00001))
    ) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.SetModel(model="scripted/other"))
        await _told(engine, session, "one", "two", "three", "four")
    told = "".join(request.messages[0].text for request in _summaries(model))
    assert all(text in told for text in (*answers, "one", "two", "three"))


async def test_a_provider_that_says_it_is_too_much_is_asked_again_with_less(home: Path) -> None:
    overflow = ProviderError("overflow", "Too long.")
    model = _auto(say(LONG), overflow, say("Yes."), window=None)
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        (made,) = await _told(engine, session, "hello", "and now?")
        assert outcomes(await story(engine, session)) == ["finished", "finished"]
    assert made.why == "too much for the model"


async def test_what_is_too_much_twice_is_a_failure(home: Path) -> None:
    overflow = ProviderError("overflow", "Too long.")
    async with scripted_runtime(home, _auto(say(LONG), overflow, overflow, window=None)) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "hello", "and now?")
        events = await story(engine, session)
    assert outcomes(events) == ["finished", "failed"]


async def test_a_first_message_that_is_too_much_cannot_be_helped(home: Path) -> None:
    async with scripted_runtime(home, _auto(ProviderError("overflow", "Too long."), window=None)) as engine:
        session = await begin_session(engine, home)
        end = ended(await said(engine, session, LONG))
    assert (end.trouble and end.trouble.kind) == "overflow"


async def test_one_huge_turn_is_cut_between_its_rounds(home: Path) -> None:
    (home / "a").write_text("x" * 900)
    script = [call_tools(("look", {"path": "a"}), ("look", {"path": "a"})) for _ in range(4)]
    model = _auto(*script, say("Done."))
    async with scripted_runtime(home, model, tools=TOOLS, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        made = await _told(engine, session, "Read it all, and never use tabs.")
        assert outcomes(await story(engine, session)) == ["finished"]
    assert made
    assert all("never use tabs" in fact.words[0] for fact in made)
    assert made[-1].ledger[0].startswith('- look {"path":"a"} → ')


async def test_a_summariser_that_fails_drops_nothing_and_the_turn_goes_on(home: Path) -> None:
    model = ScriptedProvider([say(LONG), say("?"), say("Yes.")], window=1_000)
    async with scripted_runtime(home, model, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "hello", "and now?")
        events = await story(engine, session)
    assert outcomes(events) == ["finished", "finished"]
    assert len(bodies(events, facts.CompactionFailed)) == 1
    assert [message.text for message in model.requests[-1].messages] == ["hello", LONG, "and now?"]


@pytest.mark.parametrize("said_", ["", "no", "x" * 5_000])
async def test_a_summary_that_is_none_is_refused(said_: str) -> None:
    async def summarise(_: str, __: str) -> str:
        return said_

    with pytest.raises(CompactionError):
        await compaction.compact_history(
            _history(), compaction.CompactionRange(5, _history().entries), 1_000, "x", summarise
        )


async def test_a_summary_that_saves_nothing_is_refused() -> None:
    async def summarise(_: str, text: str) -> str:
        return "y" * 60

    history = ConversationHistory(entries=[HistoryEntry(1, "t1", "input", Message("user", "z" * 80))], chars=80)
    with pytest.raises(CompactionError, match="no shorter"):
        await compaction.compact_history(history, compaction.CompactionRange(2, history.entries), 1_000, "x", summarise)


def _history() -> ConversationHistory:
    entries = [
        HistoryEntry(1, "t1", "input", Message("user", LONG)),
        HistoryEntry(2, "t1", "answer", Message("assistant", LONG)),
    ]
    return ConversationHistory(entries=entries, chars=2 * len(LONG))


async def test_a_second_compaction_keeps_the_words_and_the_ledger_of_the_first(home: Path) -> None:
    (home / "a").write_text("ok")
    model = _auto(call_tool("look", path="a"), say(LONG), say(LONG), say("Yes."))
    async with scripted_runtime(home, model, tools=TOOLS, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        first, second = await _told(engine, session, "Never use tabs.", "Or spaces.", "And now?")
    assert (first.words, second.words) == (("Never use tabs.",), ("Never use tabs.", "Or spaces."))
    assert first.ledger == second.ledger == ('- look {"path":"a"} → ok',)
    assert any("it was said to be dull" in request.messages[0].text for request in _summaries(model))


async def test_long_words_are_trimmed_and_none_is_left_out(home: Path) -> None:
    model = _auto(say("Yes."), say("Yes."), say("Yes."))
    async with scripted_runtime(home, model, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        (made,) = await _told(engine, session, f"First. {LONG}", "And now?")
    assert made.words[0].startswith("First.")
    assert len(made.words[0]) <= 1_000 * 4 * compaction.WORDS_SHARE


async def test_what_the_model_was_told_is_told_again_after_a_compaction(home: Path) -> None:
    model = _auto(say(LONG), say("Yes."))
    async with scripted_runtime(home, model, limits=SMALL, plugins=[noting("It rains.")]) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "hello", "and now?")
    texts = [message.text for message in _talk(model)[1].messages]
    assert [("rains" in text, "and now?" in text) for text in texts[1:]] == [(True, False), (False, True)]


async def test_it_can_be_asked_for(home: Path) -> None:
    model = _auto(say(LONG), say("Short."), say("Yes."), window=None)
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "hello", "and now?")
        await engine.send(session, commands.Compact())
        made = await _told(engine, session, "go on")
    assert [fact.why for fact in made] == ["asked for"]
    assert len(_talk(model)[2].messages) < 5


async def test_a_bug_while_compacting_on_request_is_raised_and_the_session_works(home: Path) -> None:
    def bug(_: ModelRequest) -> ModelReply:
        raise ZeroDivisionError

    model = ScriptedProvider([say(LONG), say("Short."), bug, say("Yes.")])
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "hello", "and now?")
        with pytest.raises(ZeroDivisionError):
            await engine.send(session, commands.Compact())
        await _told(engine, session, "go on")
        assert outcomes(await story(engine, session)) == ["finished"] * 3


async def test_a_retry_behind_a_compaction_sees_what_was_there(home: Path) -> None:
    model = _auto(say(LONG), say("Two."), say("Uno."), say("Dos."))
    async with scripted_runtime(home, model, limits=SMALL) as engine:
        session = await begin_session(engine, home)
        await _told(engine, session, "one", "two")
        await engine.send(session, commands.Retry(turn="t1", text="uno"))
        await engine.wait_until_idle(session)
    async with scripted_runtime(home, model, limits=SMALL) as engine:
        await said(engine, session, "dos")
    assert [message.text for message in _talk(model)[-1].messages] == ["uno", "Uno.", "dos"]


@given(st.lists(st.text(max_size=50), max_size=8), st.integers(1, 60))
def test_the_pieces_to_condense_make_up_the_whole(texts: list[str], size: int) -> None:
    parts = compaction.split_chunks(texts, size)
    assert "".join(parts) == "\n\n".join(texts)
    assert all(0 < len(part) <= size for part in parts)


@given(
    st.lists(st.tuples(st.sampled_from(["input", "note", "answer", "result"]), st.integers(0, 400)), max_size=20),
    st.integers(1, 2_000),
)
def test_a_cut_never_parts_a_call_from_its_result(kinds: list[tuple[str, int]], window: int) -> None:
    entries = [
        HistoryEntry(seq, "t1", kind, Message("user", "x" * size)) for seq, (kind, size) in enumerate(kinds, start=1)
    ]
    cut = compaction.choose_range(ConversationHistory(entries=entries), window, CompactionLimits())
    if cut:
        kept = entries[len(cut.old) :]
        assert cut.old + kept == entries
        assert kept[0].kind != "result"
        assert {entry.seq >= cut.upto for entry in kept} == {True}


async def test_requests_of_a_session_extend_each_other_except_after_a_compaction(home: Path) -> None:
    (home / "a").write_text("ok " * 100)
    lines = [line for _ in range(4) for line in (call_tool("look", path="a"), say(LONG[:800]))]
    model = _auto(*lines)
    weather = noting("sun", "sun", "rain", "rain")
    async with scripted_runtime(home, model, tools=TOOLS, limits=SMALL, plugins=[weather]) as engine:
        session = await begin_session(engine, home)
        made = await _told(engine, session, "one", "two", "three", "four")
    sent = [model.body(request)[:-2] for request in _talk(model)]
    misses = sum(not after.startswith(before) for before, after in pairwise(sent))
    assert misses == len(made) > 0
