from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.core.errors import ProviderError
from sylph.providers.stream.sse import SseEvent, SseParser

STREAM = (
    "\ufeff: hello\n\n"
    "data: one\n\n"
    "event: error\r\ndata: zwei \N{SNOWMAN}\r\n\r\n"
    "data:three\rdata: lines\r\r"
    "id: 7\nretry: 10\nevent: lost\n\n"
    "data\n\n"
    "data: last\n\n"
).encode()
EVENTS = [
    SseEvent("", b"one"),
    SseEvent("error", "zwei \N{SNOWMAN}".encode()),
    SseEvent("", b"three\nlines"),
    SseEvent("", b""),
    SseEvent("", b"last"),
]


def read(pieces: list[bytes]) -> list[SseEvent]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


def test_events_are_read_in_all_their_forms() -> None:
    assert read([STREAM]) == EVENTS


@given(st.sets(st.integers(0, len(STREAM))))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: set[int]) -> None:
    at = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[a:b] for a, b in pairwise(at)]) == EVENTS


@given(st.lists(st.sampled_from([b"data: x", b"data", b"event: e", b":", b"\r", b"\n", b"\r\n", b"\n\n"])), st.data())
def test_any_split_of_any_stream_gives_the_same_events(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cut = data.draw(st.integers(0, len(stream)))
    assert read([stream[:cut], stream[cut:]]) == read([stream])


def test_an_event_without_its_last_empty_line_is_not_lost() -> None:
    assert read([b"data: [DONE]"]) == [SseEvent("", b"[DONE]")]
    assert read([b"data: [DONE]\r"]) == [SseEvent("", b"[DONE]")]


def test_an_endless_line_is_refused() -> None:
    parser = SseParser(limit=100)
    parser.feed(b"data: " + b"x" * 90)
    with pytest.raises(ProviderError, match="more than 100 bytes"):
        parser.feed(b"x" * 10)


def test_an_endless_event_is_refused() -> None:
    parser = SseParser(limit=100)
    with pytest.raises(ProviderError, match="more than 100 bytes"):
        parser.feed(b"data: xxxxxxxxxx\n" * 11)


def test_many_events_do_not_add_up_to_the_limit() -> None:
    parser = SseParser(limit=100)
    assert len(parser.feed(b"data: xxxxxxxxxx\n\n" * 50)) == 50
