"""Answers in a service's own words, and which of them may go back to it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from sylph.core.messages import Message

CallIdReader = Callable[[bytes], str | None]
"""The service's own id of the call that an item is; None where it is no call."""
ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class NativeReply(NamedTuple):
    """The items to send back, byte for byte, and the service's own ids of the message's calls, in their order."""

    items: list[bytes]
    call_ids: list[str]


def read_native_reply(message: Message, model: str, call_of: CallIdReader) -> NativeReply | None:
    """What `model` itself said then, as far as the conversation still has it; None where it said nothing of use.

    A fork may have left the last calls of an answer behind: what follows the last one that is left goes with them.
    """
    if message.native is None or message.native.model != model:
        return None
    try:
        items = [bytes(item) for item in ITEMS.decode(message.native.items)]
        calls = [(at, id) for at, item in enumerate(items) if (id := call_of(item)) is not None]
    except msgspec.DecodeError:
        return None
    wanted = len(message.calls)
    if len(calls) < wanted:
        return None
    if len(calls) > wanted:
        end = calls[wanted - 1][0] + 1 if wanted else 0
        # Without any of its calls, what is left of the answer is its text.
        items = items[:end]
    return NativeReply(items, [id for _, id in calls[:wanted]]) if items else None


def find_calling_message(messages: Sequence[Message], at: int) -> Message | None:
    """The answer whose calls the result at `at` belongs to."""
    return next((each for each in reversed(messages[:at]) if each.role == "assistant"), None)
