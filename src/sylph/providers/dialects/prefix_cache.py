"""The JSON of a conversation, made once as far as the conversation only grows."""

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise

from msgspec import Struct

from sylph.core.messages import Message

MessageSpans = Callable[[Sequence[Message]], list[tuple[int, int]]]
EncodeSpan = Callable[[int, int], bytes]


class _EncodedSpan(Struct, frozen=True):
    first: int
    end: int
    json: bytes


class PrefixCache:
    """Holds what the last conversation came to; of one that begins alike, only the rest is made.

    `how` is everything else that the bytes depend on. `spans` are the messages that go out as one.
    """

    def __init__(self, spans: MessageSpans) -> None:
        self._spans = spans
        self._messages: tuple[Message, ...] = ()
        self._how: Hashable = None
        self._made: list[_EncodedSpan] = []

    def encode_spans(self, messages: tuple[Message, ...], how: Hashable, make: EncodeSpan) -> list[bytes]:
        """The JSON of each span; `make` is asked for those from its first message to its end."""
        same = _common_prefix_length(self._messages, messages) if how == self._how else 0
        made: list[_EncodedSpan] = []
        for at, (first, end) in enumerate(self._spans(messages)):
            old = self._made[at] if end <= same and at < len(self._made) else None
            kept = old is not None and (old.first, old.end) == (first, end)
            made.append(old if kept and old else _EncodedSpan(first, end, make(first, end)))
        self._messages, self._how, self._made = messages, how, made
        return [each.json for each in made]


def group_tool_results(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Results that came together go out together; every other message by itself."""
    return _split_spans(messages, lambda one, other: one.role == other.role == "tool")


def group_by_side(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """For services that want the two sides to take turns: all that stands between two answers is one."""
    return _split_spans(messages, lambda one, other: (one.role == "assistant") == (other.role == "assistant"))


def _split_spans(messages: Sequence[Message], joined: Callable[[Message, Message], bool]) -> list[tuple[int, int]]:
    cuts = [at for at, (one, other) in enumerate(pairwise(messages), 1) if not joined(one, other)]
    return list(pairwise([0, *cuts, len(messages)])) if messages else []


def _common_prefix_length(old: Sequence[Message], new: Sequence[Message]) -> int:
    same = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        same += 1
    return same
