"""Forks drawn as a tree."""

from collections.abc import Iterator, Sequence

from sylph.engine.summary import Summary
from sylph.interfaces.render import flat


def drawn(found: Sequence[Summary]) -> list[str]:
    """One line for each session, below the one it was forked from; a parent that is gone leaves its forks as roots."""
    known = {summary.id for summary in found}
    roots = [summary for summary in found if summary.parent not in known]
    children: dict[str, list[Summary]] = {}
    for summary in sorted(found, key=lambda each: each.created):
        children.setdefault(summary.parent, []).append(summary)
    return [text for root in roots for text in _branch(root, children, "", "")]


def _branch(summary: Summary, children: dict[str, list[Summary]], first: str, rest: str) -> Iterator[str]:
    origin = f"  at {summary.forked_at}" if summary.parent else ""
    yield f"{first}{summary.id}{origin}  {flat(summary.title, 50)}"
    below = children.get(summary.id, [])
    for child in below:
        last = child is below[-1]
        yield from _branch(child, children, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
