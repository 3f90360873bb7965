"""What the next request to a model would hold, part by part."""

from typing import Literal

import msgspec
from msgspec import Struct

from sylph.core import gauge
from sylph.core.errors import UserError
from sylph.engine import prompt
from sylph.engine.history import CHARS_PER_TOKEN, History, size
from sylph.engine.summary import Summary
from sylph.engine.turn import Hands, chats

Part = Literal["system", "tools", "summary", "notes", "inputs", "answers", "results"]
KINDS: dict[str, Part] = {"note": "notes", "input": "inputs", "answer": "answers", "result": "results"}


class Share(Struct, frozen=True, kw_only=True):
    """One part of the prompt; `tokens` is an estimate from its length."""

    part: Part
    messages: int
    chars: int
    tokens: int


class Context(Struct, frozen=True, kw_only=True):
    """`tokens` is what the service counted last and an estimate for what came since; `window` is 0 if unknown."""

    model: str
    tokens: int
    window: int
    percent: int
    level: gauge.Level
    parts: tuple[Share, ...]
    compacted_to: int
    """What came before this fact is only in the summary; 0 where nothing was condensed."""


def context(summary: Summary, history: History, hands: Hands) -> Context:
    window, only_chats = _known(summary.model, hands)
    tools = b"" if only_chats else msgspec.json.encode(hands.executor.specs)
    parts = [
        _share("system", 1, len(prompt.CHAT if only_chats else hands.system)),
        _share("tools", 0 if only_chats else len(hands.executor.specs), len(tools)),
        _share("summary", int(bool(history.upto)), len(history.recap()) if history.upto else 0),
    ]
    for kind, part in KINDS.items():
        sizes = [size(entry.message) for entry in history.entries if entry.kind == kind]
        parts.append(_share(part, len(sizes), sum(sizes)))
    # Before the first answer nobody has counted the head.
    tokens = history.tokens() if history.asked else sum(part.tokens for part in parts)
    return Context(
        model=summary.model,
        tokens=tokens,
        window=window,
        percent=gauge.percent(tokens, window),
        level=gauge.level(tokens, window),
        parts=tuple(parts),
        compacted_to=history.upto,
    )


def _known(model: str, hands: Hands) -> tuple[int, bool]:
    """The window of a model, and whether it gets no tools; of one that is no longer set up nothing is known."""
    try:
        info = hands.gateway.info(model)
    except UserError:
        return 0, False
    return info.window or 0, chats(info)


def _share(part: Part, messages: int, chars: int) -> Share:
    return Share(part=part, messages=messages, chars=chars, tokens=chars // CHARS_PER_TOKEN)
