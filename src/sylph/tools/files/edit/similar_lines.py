"""Where a text comes closest to one that was looked for and not found."""

import difflib
from collections.abc import Sequence

# Comparing more lines than this would make the model wait for a hint.
COMPARED = 20_000
WIDTH = 200
SHOWN = 8
CLOSE = 0.6
# So many of the lines are looked for, until one comes close.
ANCHORS = 3


def find_similar_lines(text: str, wanted: str) -> str:
    """The most similar lines, numbered; empty when nothing comes near."""
    lines, looked_for = text.splitlines()[:COMPARED], wanted.splitlines()
    anchors = [number for number, line in enumerate(looked_for) if line.strip()][:ANCHORS]
    near = ((_closest_line(lines, looked_for[anchor].strip()), anchor) for anchor in anchors)
    found = next(((at, anchor) for at, anchor in near if at is not None), None)
    if found is None:
        return ""
    start = max(found[0] - found[1], 0)
    part = lines[start : start + min(len(looked_for), SHOWN)]
    return "\n".join(f"{number}: {line[:WIDTH]}" for number, line in enumerate(part, start + 1))


def _closest_line(lines: Sequence[str], wanted: str) -> int | None:
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:WIDTH])
    best, score = None, CLOSE
    for number, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:WIDTH])
        if matcher.real_quick_ratio() <= score or matcher.quick_ratio() <= score:
            continue
        if (ratio := matcher.ratio()) > score:
            best, score = number, ratio
    return best
