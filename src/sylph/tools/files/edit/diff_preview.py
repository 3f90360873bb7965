"""What a change to a text comes to, as a person reads it."""

import difflib

from sylph.core.text.formatting import count_noun

# Beyond this a line-by-line comparison takes longer than anybody waits.
COMPARED = 20_000
SHOWN = 40


def unified_diff(name: str, before: str, after: str) -> str:
    """A unified diff; for very long texts only their lengths."""
    if before == after:
        return f"{name}: nothing changes"
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > COMPARED:
        return f"{name}: {count_noun(len(old), 'line')} become {count_noun(len(new), 'line')} (too long to compare)"
    lines = list(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm=""))
    return "\n".join(lines) or f"{name}: nothing changes but line ends"


def new_file_preview(name: str, text: str) -> str:
    """A new file and how it begins."""
    lines = text.splitlines()
    head = [f"+{line}" for line in lines[:SHOWN]]
    rest = [f"… {count_noun(len(lines) - SHOWN, 'more line')}"] if len(lines) > SHOWN else []
    return "\n".join([f"{name}: new file, {count_noun(len(lines), 'line')}", *head, *rest])
