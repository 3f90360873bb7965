"""What Anthropic's models take, told by their names alone: so the same question gives the same bytes everywhere."""

import re
from collections.abc import Mapping
from typing import Any

from sylph.core.provider import Effort

# How many tokens may go into thinking where a budget must be given.
BUDGETS: Mapping[str, int] = {"low": 2_048, "medium": 8_192, "high": 24_576}
# An answer must have some room left beside the thinking.
MIN_ANSWER_TOKENS = 1_024
# Of a model that nobody knows, on a server that only speaks like Anthropic's.
ASSUMED_OUTPUT = 16_384
OUTPUT_LIMITS: tuple[tuple[tuple[int, int], int], ...] = (
    ((4, 5), 64_000),
    ((4, 0), 32_000),
    ((3, 7), 64_000),
    ((3, 5), 8_192),
)
OLD_OUTPUT = 4_096
ADAPTIVE, STRUCTURED, THINKING = (4, 6), (4, 5), (3, 7)
NEWEST = (99, 0)


def claude_version(model: str) -> tuple[int, int] | None:
    """`claude-sonnet-4-5-20250929` is 4.5, `claude-3-5-haiku` is 3.5; None for what is not Claude."""
    name = model.lower().rpartition("/")[2]
    if "claude" not in name:
        return None
    found = re.search(r"claude-(?:[a-z]+-)?v?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    # A name without a number is one that was given after numbers went out of fashion.
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


def max_output_tokens(model: str) -> int:
    """How many tokens an answer may have at the most."""
    made = claude_version(model)
    if made is None:
        return ASSUMED_OUTPUT
    return next((size for since, size in OUTPUT_LIMITS if made >= since), OLD_OUTPUT)


def supports_json_schema(model: str) -> bool:
    """Whether it follows a JSON Schema by itself; else it is made to call a tool with that schema."""
    made = claude_version(model)
    return made is not None and made >= STRUCTURED


def thinking_options(model: str, effort: Effort, limit: int) -> dict[str, Any]:
    """The fields that ask for so much thinking; none where the model does as it likes, or cannot."""
    made = claude_version(model)
    if not effort or (made is not None and made < THINKING):
        return {}
    if made is not None and made >= ADAPTIVE:
        # The newest cannot be kept from thinking; the least effort comes closest.
        asked = {"effort": "low" if effort == "none" else effort}
        return {"output_config": asked} | ({} if effort == "none" else {"thinking": ADAPTIVE_THINKING})
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    budget = min(BUDGETS[effort], limit - MIN_ANSWER_TOKENS)
    # The service takes no budget that is smaller.
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= MIN_ANSWER_TOKENS else {}


# Newer models keep their thinking to themselves, unless they are asked to show it.
ADAPTIVE_THINKING = {"type": "adaptive", "display": "summarized"}
