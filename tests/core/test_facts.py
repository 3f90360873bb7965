"""Every event type is declared once, says what it means, and survives the way into the log and back."""

import inspect
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.core import commands
from sylph.core.errors import RETRYABLE_FAILURES, ErrorReport, FailureKind, ProviderError
from sylph.core.events import Event, EventBody, Fact, LogHead, UnreadableRecord, encode_event
from sylph.core.facts import FACTS, FACTS_BY_WIRE
from sylph.core.messages import Usage
from sylph.core.signals import SIGNALS
from sylph.engine.log.hash_chain import PendingFact, event_from_record, seal_record

EVERY: tuple[type[EventBody], ...] = (*FACTS, *SIGNALS)
troubles = st.builds(
    ErrorReport, st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=2), st.tuples(st.text())
)


def _made(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of a struct with any values its types allow."""
    fields = {field.encode_name: st.from_type(field.type) for field in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))
st.register_type_strategy(ErrorReport, troubles)
st.register_type_strategy(Usage, _made(Usage))


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.wire)
@given(data=st.data(), ts=st.integers(0, 2**53), turn=st.text(), actor=st.text())
def test_a_fact_comes_back_from_the_log_as_it_was(
    kind: type[Fact], data: st.DataObject, ts: int, turn: str, actor: str
) -> None:
    fact = data.draw(_made(kind))
    record = seal_record("s", LogHead(), PendingFact(fact, ts, turn, actor, 3))
    assert event_from_record(record) == Event(
        session="s", seq=1, ts=ts, body=fact, turn=turn, actor=actor, cause=3, hash=record.hash.hex()
    )


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.wire)
@given(data=st.data())
def test_an_event_is_one_line_of_json(kind: type[EventBody], data: st.DataObject) -> None:
    body = data.draw(_made(kind))
    line = encode_event(Event(session="s", seq=1, ts=5, body=body))
    read = json.loads(line)
    assert (b"\n" in line, read["type"], msgspec.convert(read["data"], kind)) == (False, kind.wire, body)


def test_names_are_unique_and_every_type_says_what_it_means() -> None:
    names = [kind.wire for kind in EVERY]
    assert len(set(names)) == len(names)
    assert all(names)
    assert FACTS_BY_WIRE.keys() == {kind.wire for kind in FACTS}
    assert all(kind.__doc__ and kind.__doc__ != Fact.__doc__ for kind in EVERY)


def test_every_declared_fact_and_signal_is_in_its_list() -> None:
    assert {kind for kind in Fact.__subclasses__() if kind is not UnreadableRecord} == set(FACTS)
    assert {kind for kind in msgspec.Struct.__subclasses__() if kind.__module__ == "sylph.core.commands"} == set(
        get_args(commands.Command)
    )


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(b'{"a": [1]}', {"a": [1]}), (b"\xff", {"damaged": "broken"}), (b"{", {"damaged": "broken"})],
)
def test_a_carried_record_is_shown_as_far_as_it_can_be(raw: bytes, shown: object) -> None:
    body = UnreadableRecord(type="dream.dreamt", raw=raw, why="broken")
    read = json.loads(encode_event(Event(session="s", seq=1, ts=5, body=body)))
    assert (read["type"], read["data"]) == ("dream.dreamt", shown)


def test_a_carried_record_goes_into_a_log_with_the_bytes_it_came_with() -> None:
    fact = UnreadableRecord(type="dream.dreamt", raw=b'{"of": "sheep"}', why="unknown type")
    record = seal_record("s", LogHead(), PendingFact(fact, 1, "", "user", 0))
    assert (record.type, record.data, event_from_record(record).body) == ("dream.dreamt", fact.raw, fact)


def test_what_must_be_safe_is_durable() -> None:
    durable = {fact.wire for fact in FACTS if fact.durable}
    assert durable >= {"input.received", "tool.started", "turn.ended", "asked", "answered", "session.created"}


def test_every_failure_is_either_passing_or_not() -> None:
    assert set(get_args(FailureKind)) > RETRYABLE_FAILURES
    assert [ProviderError(kind, "x").is_retryable for kind in get_args(FailureKind)].count(True) == len(
        RETRYABLE_FAILURES
    )


def test_every_command_has_a_meaning_that_can_be_read() -> None:
    commands_ = get_args(commands.Command)
    assert len({command.__name__ for command in commands_}) == len(commands_)
    assert all(inspect.isclass(command) for command in commands_)
