"""What a change to a text comes to, as a person reads it."""

import difflib

from sylph.core.text import count

# Beyond this a line-by-line comparison takes longer than anybody waits.
COMPARED = 20_000
SHOWN = 40


def unified(name: str, before: str, after: str) -> str:
    """A unified diff; for very long texts only their lengths."""
    if before == after:
        return f"{name}: nothing changes"
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > COMPARED:
        return f"{name}: {count(len(old), 'line')} become {count(len(new), 'line')} (too long to compare)"
    lines = list(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm=""))
    return "\n".join(lines) or f"{name}: nothing changes but line ends"


def added(name: str, text: str) -> str:
    """A new file and how it begins."""
    lines = text.splitlines()
    head = [f"+{line}" for line in lines[:SHOWN]]
    rest = [f"… {count(len(lines) - SHOWN, 'more line')}"] if len(lines) > SHOWN else []
    return "\n".join([f"{name}: new file, {count(len(lines), 'line')}", *head, *rest])
