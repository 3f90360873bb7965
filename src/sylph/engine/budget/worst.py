"""The most that one model call can take, before anybody has asked the model."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from sylph.core.budget import UNKNOWN_ANSWER
from sylph.core.messages import Message
from sylph.core.provider import ModelInfo

# Text that no tokenizer has seen before (digests, base64) comes to about two bytes for a token, prose and code to four.
# What the service has counted in the call before needs no guess; all of it together never counts less than a third.
DENSE, PLAIN = 2, 3
# No picture comes to more, in the models of today.
IMAGE = 50_000
PICTURE = "image/"
# A budget that affords only a shorter answer than this affords none.
LEAST = 1_024
# What is reckoned with where a service takes no limit, and nobody knows what its model can do.
UNBOUND = 65_536


class Counted(NamedTuple):
    """A prompt whose tokens the service has counted: its text in bytes, its tokens, and how many images it held."""

    text: int = 0
    tokens: int = 0
    images: int = 0


class Prompt(NamedTuple):
    """What of a request's size says how many tokens it has."""

    text: int
    pictures: tuple[int, ...] = ()


def measure(body: int, messages: Sequence[Message]) -> Prompt:
    """Pictures stand in the body as base64, and cost by their area: they are counted apart. Documents count as text."""
    pictures = tuple(
        image.bytes
        for message in messages
        for image in message.images
        if image.media.startswith(PICTURE) and image.bytes
    )
    return Prompt(max(body - sum(size * 4 // 3 for size in pictures), 0), pictures)


def tokens(prompt: Prompt, before: Counted) -> int:
    """How many tokens a prompt has at the most, as far as one can tell without its tokenizer."""
    if before.text > prompt.text or before.images > len(prompt.pictures):
        # It was condensed: what was counted is not in it any more.
        before = Counted()
    new = prompt.pictures[before.images :]
    pictures = sum(min(ceil(size * 4 / 9), IMAGE) for size in new)
    grown = before.tokens + ceil((prompt.text - before.text) / DENSE)
    return max(grown, ceil(prompt.text / PLAIN)) + pictures


def longest(info: ModelInfo, most: int, wanted: int | None, *, bound: bool = True) -> int:
    """How long an answer can be at the most: what the model can do, what is set, what is asked for.

    A service that is not `bound` by what it is told may answer as long as its model can.
    """
    if not bound:
        return info.output or most
    can = info.output or min(UNKNOWN_ANSWER, max((info.window or UNKNOWN_ANSWER * 2) // 2, LEAST))
    return min(can, most, *([wanted] if wanted else []))


class Price(NamedTuple):
    """Micro-dollars per million tokens."""

    input: int
    output: int

    def cost(self, input: int, output: int) -> int:
        return ceil((input * self.input + output * self.output) / 1_000_000)

    def affords(self, money: int, input: int) -> int:
        """How many tokens of an answer so much money pays for, after the prompt is paid."""
        left = money * 1_000_000 - input * self.input
        return -1 if left < 0 else left // self.output if self.output else 1 << 40


def price(info: ModelInfo, input: int = 0) -> Price | None:
    """The dearest way each token can be charged, with so many of `input`; None where a price is not known."""
    if info.price_in is None or info.price_out is None:
        return None
    written = max(info.price_cached or 0, info.price_written or 0)
    if info.above is None or input <= info.above:
        return Price(max(info.price_in, written), info.price_out)
    long = max(info.price_in, info.above_in or 0, info.above_cached or 0)
    return Price(max(long, written), max(info.price_out, info.above_out or 0))
