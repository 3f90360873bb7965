"""What comes in pieces: placeholders that are cut in two, lines that are not complete, keys of many lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sylph.core import facts, signals
from sylph.core.events import Event, Fact
from sylph.engine.redact.event_redactor import EventRedactor
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import NoRedaction, Redactor
from sylph.engine.redact.stream import StreamRedactor, StreamRestorer

KEY = "sk-proj-abcDEF123456789012345678"
BODY = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + letter * 12 for letter in "abc"]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *BODY, "AbCd12==", "-----END PRIVATE KEY-----", ""])


@pytest.fixture(scope="module")
def redactor(tmp_path_factory: pytest.TempPathFactory) -> Redactor:
    return Redactor(RedactionPolicy(), tmp_path_factory.mktemp("vault"))


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces: list[str] = []
    for size in sizes:
        pieces.append(text[:size])
        text = text[size:]
    return [*pieces, text]


SIZES = some.lists(some.integers(0, 20), max_size=40)


@given(sizes=SIZES)
def test_placeholders_come_back_however_they_are_cut(redactor: Redactor, sizes: list[int]) -> None:
    real = f"The key ⟦ is {KEY}, once more {KEY}; ⟦secret:none:0123456789⟧ ⟦"
    shown = StreamRestorer(redactor)
    pieces = [shown.restore_piece(piece) for piece in cut(redactor.redact_text(real), sizes)]
    assert "".join(pieces) + shown.flush() == real


@given(sizes=SIZES)
def test_an_output_is_hidden_however_it_is_cut(redactor: Redactor, sizes: list[int]) -> None:
    text = f'first\npassword = "hunter2hunter"\r\n{KEY} x\n{PEM}last {KEY}'
    shown: list[str] = []
    hidden = StreamRedactor(redactor, shown.append)
    for piece in cut(text, sizes):
        hidden(piece)
    hidden.flush()
    assert "".join(shown) == redactor.redact_text(text)


@given(sizes=SIZES)
def test_a_trace_holds_no_secret_however_the_model_says_it(redactor: Redactor, sizes: list[int]) -> None:
    text = f'Here it is: {KEY} and password = "hunter2hunter".\n{PEM}That was it, and nothing more'
    trace, told = EventRedactor(redactor), list[Event]()
    for piece in cut(text, sizes):
        told += trace.redact_event(_event(signals.TextDelta(text=piece)))
        told += trace.redact_event(_event(signals.ArgsDelta(index=0, name="write", text=piece)))
    told += trace.redact_event(_event(facts.SessionRenamed(title="x")))
    for kind in (signals.TextDelta, signals.ArgsDelta):
        said = "".join(event.body.text for event in told if isinstance(event.body, kind))
        assert redactor.restore_text(said) == text
        assert KEY not in said
        assert "hunter2hunter" not in said
        assert "MIIE" not in said
    assert isinstance(told[-1].body, facts.SessionRenamed)


def test_words_that_are_not_suspect_are_not_kept_waiting(redactor: Redactor) -> None:
    trace = EventRedactor(redactor)
    told = [
        event.body
        for piece in ("An ans", "wer of ma", "ny words")
        for event in trace.redact_event(_event(signals.TextDelta(text=piece)))
    ]
    assert told == [
        signals.TextDelta(text="An "),
        signals.TextDelta(text="answer of "),
        signals.TextDelta(text="many "),
    ]


def test_without_a_veil_all_is_as_it_comes() -> None:
    event = _event(signals.TextDelta(text=KEY))
    assert list(EventRedactor(NoRedaction()).redact_event(event)) == [event]
    shown: list[str] = []
    StreamRedactor(NoRedaction(), shown.append)("half a li")
    assert shown == ["half a li"]
    assert StreamRestorer(NoRedaction()).restore_piece("⟦secret:x:0123456789⟧") == "⟦secret:x:0123456789⟧"


def _event(body: signals.Signal | Fact) -> Event:
    return Event(session="s", seq=0, ts=0, body=body)
