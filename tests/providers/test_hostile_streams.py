"""Answers that are damaged or made to do harm: each comes to a reply or to an error that the gateway knows."""

import json
import random
from collections.abc import Callable
from typing import Any, Protocol, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model_server import Step
from tests.model_server.bedrock import frame
from tests.model_server.server import DIALECTS

from sylph.core.errors import ProviderError
from sylph.core.messages import Message, NativeItems, ToolCall
from sylph.core.provider import Chunk, ModelReply, ModelRequest
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.anthropic import provider as anthropic
from sylph.providers.dialects.anthropic.reply import AnthropicReply
from sylph.providers.dialects.bedrock import provider as bedrock
from sylph.providers.dialects.bedrock.reply import ConverseReply
from sylph.providers.dialects.gemini import provider as gemini
from sylph.providers.endpoint import Endpoint
from sylph.providers.registry import create_provider

HERE = Endpoint(name="here", base_url="http://x")
RICH = Step(
    text="Grüße 🙂",
    reasoning="Hm, 世界.",
    encrypted="c2ln",
    searched=True,
    calls=(("read", {"path": "ä", "n": [1, 2.5, None]}), ("list", {})),
)


class Stream(Protocol):
    def feed(self, piece: bytes) -> list[Chunk]: ...
    def close(self) -> list[Chunk]: ...


class Told:
    """An Anthropic stream with its reply at the end, like the others."""

    def __init__(self) -> None:
        self._reply = AnthropicReply()
        self._stream = anthropic._MessageStream(HERE, "m", self._reply)  # pyright: ignore[reportPrivateUsage]
        self.feed = self._stream.feed

    def close(self) -> list[Chunk]:
        return [*self._stream.close(), self._reply.build_reply()]


STREAMS: dict[str, Callable[[], Stream]] = {
    "anthropic": Told,
    "gemini": lambda: gemini._GeminiStream(HERE, "m"),  # pyright: ignore[reportPrivateUsage]
    "bedrock": lambda: bedrock._ConverseStream(HERE, "m", ConverseReply()),  # pyright: ignore[reportPrivateUsage]
}


def heard(dialect: str, data: bytes, size: int) -> ModelReply | None:
    """What a stream comes to; None where it was refused."""
    stream = STREAMS[dialect]()
    try:
        for at in range(0, len(data), size):
            stream.feed(data[at : at + size])
        *_, reply = stream.close()
    except ProviderError:
        return None
    assert isinstance(reply, ModelReply)
    if reply.native:
        again(dialect, reply)
    return reply


def again(dialect: str, reply: ModelReply) -> None:
    """What is kept of it can go back: the next body is JSON."""
    calls = tuple(ToolCall(f"t1_c{at}", call.name, call.arguments) for at, call in enumerate(reply.calls))
    said = Message("assistant", reply.text, calls, native=NativeItems("here/m", reply.native))
    results = [Message("tool", "x", call=call.id) for call in calls]
    spoken = create_provider(Endpoint(name="here", base_url="http://x", dialect=dialect), HttpClient())
    json.loads(spoken.body(ModelRequest(model="m", system="", messages=(Message("user", "x"), said, *results))))


@pytest.mark.parametrize("dialect", STREAMS)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1 << 32), size=st.sampled_from([1, 3, 50, 100_000]))
def test_flipped_lost_and_doubled_bytes_do_no_harm(dialect: str, seed: int, size: int) -> None:
    chance = random.Random(seed)
    data = bytearray(b"".join(DIALECTS[dialect]().frames(RICH)[0]))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randint(1, 40)]
            case 2:
                data[at:at] = data[at : at + chance.randint(1, 200)]
            case _:
                data[at:at] = bytes(chance.randrange(256) for _ in range(5))
    heard(dialect, bytes(data), size)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 1 << 70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def packets(dialect: str) -> list[dict[str, Any]]:
    """The packets of an answer with everything in it."""
    frames, _ = DIALECTS[dialect]().frames(RICH)
    if dialect == "bedrock":
        return [json.loads(each[12 + int.from_bytes(each[4:8], "big") : -4]) for each in frames]
    return [json.loads(each.partition(b"data: ")[2]) for each in frames]


def swap(value: Any, chance: random.Random, odd: Any) -> Any:
    """The same value with one place in it changed for something odd."""
    if not value or not isinstance(value, dict | list) or chance.random() < 0.15:
        return odd
    made: dict[Any, Any] = dict(
        cast("dict[str, Any]", value) if isinstance(value, dict) else enumerate(cast("list[Any]", value))
    )
    at = chance.choice(list(made))
    made[at] = swap(made[at], chance, odd)
    return made if isinstance(value, dict) else list(made.values())


@pytest.mark.parametrize("dialect", STREAMS)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1 << 32), odd=ODD)
def test_values_of_another_kind_do_no_harm(dialect: str, seed: int, odd: Any) -> None:
    chance = random.Random(seed)
    told = packets(dialect)
    at = chance.randrange(len(told))
    told[at] = swap(told[at], chance, odd)
    if dialect == "bedrock":
        data = b"".join(frame("event", packet) for packet in told)
    else:
        data = b"".join(b"data: %b\n\n" % json.dumps(packet).encode() for packet in told)
    heard(dialect, data, 1000)


@pytest.mark.parametrize("dialect", STREAMS)
def test_an_answer_with_everything_in_it_is_whole(dialect: str) -> None:
    reply = heard(dialect, b"".join(DIALECTS[dialect]().frames(RICH)[0]), 7)
    assert reply
    assert (reply.text, reply.reasoning, len(reply.calls)) == ("Grüße 🙂", "Hm, 世界.", 2)


@pytest.mark.parametrize("dialect", ["anthropic", "gemini"])
def test_an_event_without_end_is_refused(dialect: str) -> None:
    stream = STREAMS[dialect]()
    with pytest.raises(ProviderError, match="more than"):
        for _ in range(20):
            stream.feed(b"data: " + b"x" * (1 << 20))
