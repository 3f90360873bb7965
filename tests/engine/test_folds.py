"""What is shown is computed from the log: from all of it, or from a snapshot and the rest, with the same result."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.checks import check_messages
from tests.engine.plausible import Life, Move, moves, rebuilt

from sylph.core import facts
from sylph.core.events import Event, Fact, UnreadableRecord
from sylph.core.facts.turn import PlanStep
from sylph.core.messages import Message
from sylph.engine.folds.fold import Fold
from sylph.engine.folds.history import HISTORY_FOLD, NO_RESULT, ConversationHistory
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.folds.tasks import build_tasks

S = TypeVar("S", bound=msgspec.Struct)


def _fold(fold: Fold[S], events: Sequence[Event], state: S | None = None) -> S:
    state = state or fold.state()
    for event in events:
        fold.step(state, event)
    return state


def _kept(fold: Fold[S], state: S) -> S:
    """A state as it comes back from a snapshot."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=fold.state)


def _events(*new: Fact) -> list[Event]:
    return [Event(session="s", seq=seq, ts=seq, body=fact, turn="t1") for seq, fact in enumerate(new, start=1)]


@given(moves, st.integers(0, 200))
def test_a_snapshot_anywhere_and_the_rest_make_the_whole(walk: list[Move], place: int) -> None:
    events = Life().live(walk).events
    before, after = events[: place % (len(events) + 1)], events[place % (len(events) + 1) :]
    assert _fold(SESSION_FOLD, after, _kept(SESSION_FOLD, _fold(SESSION_FOLD, before))) == _fold(SESSION_FOLD, events)
    assert _fold(HISTORY_FOLD, after, _kept(HISTORY_FOLD, _fold(HISTORY_FOLD, before))) == _fold(HISTORY_FOLD, events)


@given(moves)
def test_a_rebuilt_history_is_the_one_that_grew(walk: list[Move]) -> None:
    life = Life().live(walk)
    assert rebuilt(life.events).build_messages() == life.history.build_messages()
    grown = _fold(HISTORY_FOLD, life.events)
    assert grown.lost or grown.build_messages() == life.history.build_messages()


@given(moves)
def test_every_prefix_of_every_life_is_something_a_provider_accepts(walk: list[Move]) -> None:
    state = ConversationHistory()
    for event in Life().live(walk).events:
        HISTORY_FOLD.step(state, event)
        check_messages(state.build_messages())


@given(moves)
def test_no_word_of_the_person_gets_lost(walk: list[Move]) -> None:
    """Without rewinds everything that was delivered is shown, in full or in the words of a compaction."""
    life = Life().live([move for move in walk if move[0] != "rewind"])
    began = [fact.input for event in life.events if isinstance(fact := event.body, facts.TurnStarted)]
    began += [fact.id for event in life.events if isinstance(fact := event.body, facts.InputDelivered)]
    texts = {fact.id: fact.text for event in life.events if isinstance(fact := event.body, facts.InputReceived)}
    shown = "\n".join(message.text for message in life.history.build_messages())
    assert all(texts[id] in shown for id in began)


@given(moves)
def test_tasks_are_the_turns_of_a_session(walk: list[Move]) -> None:
    life = Life().live(walk)
    found = build_tasks(life.events)
    assert [task.turn for task in found] == [f"t{number + 1}" for number in range(life.summary.turns)]
    assert [task.turn for task in found if task.outcome == "open"] == [life.summary.open_turn] * bool(
        life.summary.open_turn
    )


def test_notes_stand_before_the_message_they_came_with() -> None:
    told = [facts.ContextAdded(topic=topic, text="…") for topic in ("date", "mode")]
    events = _events(facts.InputReceived(id="i1", text="hello"), facts.TurnStarted(input="i1"), *told)
    texts = [message.text for message in _fold(HISTORY_FOLD, events).build_messages()]
    assert [text.partition("\n")[0] for text in texts] == [
        '<context topic="date">',
        '<context topic="mode">',
        "hello",
    ]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    events = _events(
        facts.ModelResponded(model="m/m", text="", finish="calls"),
        facts.ToolCalled(call="t1_c1", name="look", arguments="{}"),
        facts.ToolFinished(call="t0_c9", ok=True, output="of another branch"),
    )
    assert _fold(HISTORY_FOLD, events).build_messages()[1:] == (Message("tool", NO_RESULT, call="t1_c1"),)


def test_a_call_that_belongs_to_no_answer_is_left_out() -> None:
    events = _events(facts.ToolCalled(call="t1_c1", name="look", arguments="{}"))
    assert _fold(HISTORY_FOLD, events).build_messages() == ()


def test_tokens_are_counted_by_the_provider_and_estimated_from_there() -> None:
    life = Life().live([("send", 0), ("start", 0), ("answer", 1)])
    before = life.history.estimate_tokens()
    life.write(facts.ToolFinished(call="t1_c1", ok=True, output="x" * 400))
    assert (before, life.history.estimate_tokens()) == (110, 210)


def test_a_record_nobody_can_read_changes_nothing_but_the_place() -> None:
    (event,) = _events(UnreadableRecord(type="dream.dreamt", raw=b"{}", why="unknown type"))
    assert _fold(SESSION_FOLD, [event]) == SessionState(seq=1, updated=1)
    assert _fold(HISTORY_FOLD, [event]) == ConversationHistory()


def test_what_a_session_costs_is_unknown_until_something_is_known() -> None:
    free = facts.ModelResponded(model="m/m", text="", finish="stop")
    paid = facts.ModelResponded(model="m/m", text="", finish="stop", cost=7)
    assert [_fold(SESSION_FOLD, _events(*new)).cost for new in ([free], [paid, free, paid])] == [None, 14]
    (task,) = build_tasks(_events(facts.TurnStarted(input="i1"), free, paid, paid))
    assert task.cost == 14


def test_the_plan_is_the_last_one_told() -> None:
    one, two = (facts.PlanUpdated(steps=(PlanStep(text),)) for text in ("look", "act"))
    assert _fold(SESSION_FOLD, _events(one, two)).plan == two.steps
