"""The most that one model call can take, before anybody has asked the model."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from sylph.core.facts.budget import UNKNOWN_MODEL_TOKENS
from sylph.core.messages import Message
from sylph.core.provider import ModelInfo

# Text that no tokenizer has seen before (digests, base64) comes to about two bytes for a token, prose and code to four.
# What the service has counted in the call before needs no guess; all of it together never counts less than a third.
DENSE_BYTES, PLAIN_BYTES = 2, 3
# No picture comes to more, in the models of today.
IMAGE_TOKENS = 50_000
PICTURE = "image/"
# A budget that affords only a shorter answer than this affords none.
LEAST_ANSWER = 1_024
# What is reckoned with where a service takes no limit, and nobody knows what its model can do.
UNBOUND_ANSWER = 65_536


class CountedPrompt(NamedTuple):
    """A prompt whose tokens the service has counted: its text in bytes, its tokens, and how many images it held."""

    text: int = 0
    tokens: int = 0
    images: int = 0


class PromptSize(NamedTuple):
    """What of a request's size says how many tokens it has."""

    text: int
    pictures: tuple[int, ...] = ()


def measure_prompt(body: int, messages: Sequence[Message]) -> PromptSize:
    """Pictures stand in the body as base64, and cost by their area: they are counted apart. Documents count as text."""
    pictures = tuple(
        image.bytes
        for message in messages
        for image in message.images
        if image.media.startswith(PICTURE) and image.bytes
    )
    return PromptSize(max(body - sum(size * 4 // 3 for size in pictures), 0), pictures)


def estimate_tokens(prompt: PromptSize, before: CountedPrompt) -> int:
    """How many tokens a prompt has at the most, as far as one can tell without its tokenizer."""
    if before.text > prompt.text or before.images > len(prompt.pictures):
        # It was condensed: what was counted is not in it any more.
        before = CountedPrompt()
    new = prompt.pictures[before.images :]
    pictures = sum(min(ceil(size * 4 / 9), IMAGE_TOKENS) for size in new)
    grown = before.tokens + ceil((prompt.text - before.text) / DENSE_BYTES)
    return max(grown, ceil(prompt.text / PLAIN_BYTES)) + pictures


def longest_answer(info: ModelInfo, most: int, wanted: int | None, *, bound: bool = True) -> int:
    """How long an answer can be at the most: what the model can do, what is set, what is asked for.

    A service that is not `bound` by what it is told may answer as long as its model can.
    """
    if not bound:
        return info.output or most
    can = info.output or min(UNKNOWN_MODEL_TOKENS, max((info.window or UNKNOWN_MODEL_TOKENS * 2) // 2, LEAST_ANSWER))
    return min(can, most, *([wanted] if wanted else []))


class TokenPrice(NamedTuple):
    """Micro-dollars per million tokens."""

    input: int
    output: int

    def cost_of(self, input: int, output: int) -> int:
        return ceil((input * self.input + output * self.output) / 1_000_000)

    def affordable_tokens(self, money: int, input: int) -> int:
        """How many tokens of an answer so much money pays for, after the prompt is paid."""
        left = money * 1_000_000 - input * self.input
        return -1 if left < 0 else left // self.output if self.output else 1 << 40


def worst_price(info: ModelInfo, input: int = 0) -> TokenPrice | None:
    """The dearest way each token can be charged, with so many of `input`; None where a price is not known."""
    if info.price_in is None or info.price_out is None:
        return None
    written = max(info.price_cached or 0, info.price_written or 0)
    if info.above is None or input <= info.above:
        return TokenPrice(max(info.price_in, written), info.price_out)
    long = max(info.price_in, info.above_in or 0, info.above_cached or 0)
    return TokenPrice(max(long, written), max(info.price_out, info.above_out or 0))
