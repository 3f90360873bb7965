"""What is in a folder, as an indented tree of bounded size."""

import heapq
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from sylph.tools.files.workspace_paths import printable_name

MOST = 1_000
# Of use to git alone.
CLOSED = frozenset({".git"})

Entry = os.DirEntry[str]


class FolderSurvey(Struct):
    """The entries of each folder that was opened, and how much was left out."""

    children: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    listed: int = 0
    omitted: int = 0
    unopened: int = 0


def render_folder(path: Path, *, depth: int, hidden: bool, most: int = MOST) -> str:
    """The tree, and a note on what is not in it; empty for an empty folder. Raises OSError."""
    found = _survey_folder(path, depth=depth, hidden=hidden, most=most)
    lines = list(_render_entries(found, str(path), ""))
    if found.omitted or found.unopened:
        lines.append(
            f"[left out: {found.omitted:,} entries and the content of {found.unopened:,} folders; "
            f"use find or list deeper]"
        )
    return "\n".join(lines)


def _survey_folder(path: Path, *, depth: int, hidden: bool, most: int) -> FolderSurvey:
    """Level by level, so that one full folder does not hide its neighbours."""
    found = FolderSurvey()
    waiting = deque([(str(path), 1)])
    while waiting:
        place, level = waiting.popleft()
        if found.listed >= most or (level > 1 and not os.access(place, os.R_OK | os.X_OK)):
            found.unopened += 1
            continue
        entries, left = _first_entries(place, hidden=hidden, most=most - found.listed)
        found.children[place] = entries
        found.listed += len(entries)
        found.omitted += left
        waiting.extend((entry.path, level + 1) for entry in entries if level < depth and _can_descend(entry))
    return found


def _first_entries(place: str, *, hidden: bool, most: int) -> tuple[list[Entry], int]:
    """The first `most` by name, and how many more there are; never all of them in memory."""
    seen = 0

    def wanted(entries: Iterator[Entry]) -> Iterator[Entry]:
        nonlocal seen
        for entry in entries:
            if hidden or not entry.name.startswith("."):
                seen += 1
                yield entry

    with os.scandir(place) as entries:
        kept = heapq.nsmallest(most, wanted(entries), key=lambda entry: entry.name)
    return kept, seen - len(kept)


def _can_descend(entry: Entry) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.name not in CLOSED


def _render_entries(found: FolderSurvey, place: str, indent: str) -> Iterator[str]:
    for entry in found.children[place]:
        yield indent + _entry_label(entry)
        if entry.path in found.children:
            yield from _render_entries(found, entry.path, indent + "  ")


def _entry_label(entry: Entry) -> str:
    name = printable_name(entry.name)
    if entry.is_symlink():
        return f"{name} -> {printable_name(str(Path(entry.path).readlink()))}"
    return f"{name}/" if entry.is_dir() else name
