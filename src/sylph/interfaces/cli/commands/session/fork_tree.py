"""Forks drawn as a tree."""

from collections.abc import Iterator, Sequence

from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.text.render import one_line


def draw_fork_tree(found: Sequence[SessionState]) -> list[str]:
    """One line for each session, below the one it was forked from; a parent that is gone leaves its forks as roots."""
    known = {summary.id for summary in found}
    roots = [summary for summary in found if summary.parent not in known]
    children: dict[str, list[SessionState]] = {}
    for summary in sorted(found, key=lambda each: each.created):
        children.setdefault(summary.parent, []).append(summary)
    return [text for root in roots for text in _draw_branch(root, children, "", "")]


def _draw_branch(
    summary: SessionState, children: dict[str, list[SessionState]], first: str, rest: str
) -> Iterator[str]:
    origin = f"  at {summary.forked_at}" if summary.parent else ""
    yield f"{first}{summary.id}{origin}  {one_line(summary.title, 50)}"
    below = children.get(summary.id, [])
    for child in below:
        last = child is below[-1]
        yield from _draw_branch(child, children, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
