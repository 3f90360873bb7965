"""What the next request to a model would hold, part by part."""

from typing import Literal

import msgspec
from msgspec import Struct

from sylph.core.errors import UserError
from sylph.core.text import window_usage
from sylph.engine.folds.history import CHARS_PER_TOKEN, ConversationHistory, message_size
from sylph.engine.folds.session_state import SessionState
from sylph.engine.turn import system_prompt
from sylph.engine.turn.agent_loop import Agent, is_chat_only

ContextPart = Literal["system", "tools", "summary", "notes", "inputs", "answers", "results"]
PART_BY_ENTRY_KIND: dict[str, ContextPart] = {
    "note": "notes",
    "input": "inputs",
    "answer": "answers",
    "result": "results",
}


class ContextShare(Struct, frozen=True, kw_only=True):
    """One part of the prompt; `tokens` is an estimate from its length."""

    part: ContextPart
    messages: int
    chars: int
    tokens: int


class ContextUsage(Struct, frozen=True, kw_only=True):
    """`tokens` is what the service counted last and an estimate for what came since; `window` is 0 if unknown."""

    model: str
    tokens: int
    window: int
    percent: int
    level: window_usage.WindowLevel
    parts: tuple[ContextShare, ...]
    compacted_to: int
    """What came before this fact is only in the summary; 0 where nothing was condensed."""


def measure_context(summary: SessionState, history: ConversationHistory, agent: Agent) -> ContextUsage:
    window, only_chats = _model_limits(summary.model, agent)
    tools = b"" if only_chats else msgspec.json.encode(agent.executor.specs)
    parts = [
        _estimate_share("system", 1, len(system_prompt.CHAT_PROMPT if only_chats else agent.system)),
        _estimate_share("tools", 0 if only_chats else len(agent.executor.specs), len(tools)),
        _estimate_share("summary", int(bool(history.upto)), len(history.recap_text()) if history.upto else 0),
    ]
    for kind, part in PART_BY_ENTRY_KIND.items():
        sizes = [message_size(entry.message) for entry in history.entries if entry.kind == kind]
        parts.append(_estimate_share(part, len(sizes), sum(sizes)))
    # Before the first answer nobody has counted the head.
    tokens = history.estimate_tokens() if history.asked else sum(part.tokens for part in parts)
    return ContextUsage(
        model=summary.model,
        tokens=tokens,
        window=window,
        percent=window_usage.window_percent(tokens, window),
        level=window_usage.window_level(tokens, window),
        parts=tuple(parts),
        compacted_to=history.upto,
    )


def _model_limits(model: str, agent: Agent) -> tuple[int, bool]:
    """The window of a model, and whether it gets no tools; of one that is no longer set up nothing is known."""
    try:
        info = agent.gateway.model_info(model)
    except UserError:
        return 0, False
    return info.window or 0, is_chat_only(info)


def _estimate_share(part: ContextPart, messages: int, chars: int) -> ContextShare:
    return ContextShare(part=part, messages=messages, chars=chars, tokens=chars // CHARS_PER_TOKEN)
