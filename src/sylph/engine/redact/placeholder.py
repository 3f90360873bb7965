"""What stands in the place of a secret: `⟦secret:KIND:TAG⟧`. The tag comes from the value and the home's own key."""

import re

OPEN, CLOSE = "⟦", "⟧"
LONGEST = 80
PLACEHOLDER_PATTERN = re.compile(r"⟦secret:([a-z0-9-]{1,32}):([0-9a-f]{10}|[0-9a-f]{20}|[0-9a-f]{40})⟧")
# A quick look: whether it is worth a close one, also inside of JSON that writes all else than ASCII as escapes.
PLACEHOLDER_HINT = "secret:"


def format_placeholder(kind: str, tag: str) -> str:
    return f"{OPEN}secret:{kind}:{tag}{CLOSE}"


def placeholder_kind(name: str) -> str:
    """A name as it may stand in a placeholder."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32] or "own"
