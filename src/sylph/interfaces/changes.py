"""Changed files as a person reads them: a line for each, and the differences where they are asked for. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from sylph.core.changes import FileLeft, FilesRestored, shown
from sylph.core.text import count
from sylph.engine.undo.differences import FileDiff, TurnDiff
from sylph.interfaces.clean import clean
from sylph.interfaces.render import Line, Span, Style, line

MARKS = {"created": "A", "deleted": "D", "changed": "M"}
BRIEF = 20
ROWS = 400


def turn_lines(turn: TurnDiff, *, diff: bool = False) -> Iterator[Line]:
    """What a turn changed: a list, short unless the differences are asked for."""
    if turn.files:
        undone = all(file.undone for file in turn.files)
        yield line(f"{count(len(turn.files), 'path')} changed{', undone since' if undone else ''}:", "dim")
    yield from file_lines(turn.files, diff=diff)
    yield from gap_lines(turn.gaps)


def file_lines(files: Sequence[FileDiff], *, diff: bool = False) -> Iterator[Line]:
    brief = files if diff else files[:BRIEF]
    for file in brief:
        yield _file(file)
        if diff and file.diff:
            yield from diff_lines(file.diff)
    if len(files) > len(brief):
        yield line(f"    … {count(len(files) - len(brief), 'path')} more (--diff)", "dim")


def diff_lines(text: str) -> Iterator[Line]:
    rows = [clean(row) for row in text.split("\n")]
    yield from (line(f"    {row}", _style(row)) for row in rows[:ROWS])
    if len(rows) > ROWS:
        yield line(f"    … {count(len(rows) - ROWS, 'line')} more", "dim")


def gap_lines(gaps: Iterable[str]) -> Iterator[Line]:
    kept = list(gaps)
    yield from (line(f"    ! {clean(gap)}", "warn") for gap in kept[:BRIEF])
    if len(kept) > BRIEF:
        yield line(f"    ! … and {len(kept) - BRIEF} more that cannot be undone", "warn")


def restored_lines(done: FilesRestored) -> Iterator[Line]:
    """What an undo came to."""
    yield line(f"{count(len(done.restored), 'path')} restored", "ok")
    if done.left:
        yield line(
            f"{count(len(done.left), 'path')} left as it is:"
            if len(done.left) == 1
            else f"{count(len(done.left), 'path')} left as they are:",
            "warn",
        )
        yield from left_lines(done.left)


def left_lines(left: Sequence[FileLeft]) -> Iterator[Line]:
    yield from (line(f"    ! {clean(shown(each.path))}: {clean(each.why)}", "warn") for each in left[:BRIEF])
    if len(left) > BRIEF:
        yield line(f"    ! … and {count(len(left) - BRIEF, 'path')} more", "warn")


def _file(file: FileDiff) -> Line:
    sums = f"  +{file.added} -{file.removed}" if file.added is not None else ""
    note = f"  ({clean(file.note)})" if file.note else ""
    undone = "  undone" if file.undone else ""
    return (Span(f"    {MARKS[file.what]} {clean(file.path)}"), Span(f"{sums}{note}{undone}", "dim"))


def _style(row: str) -> Style:
    if row.startswith(("+++", "---", "@@")):
        return "dim"
    return "add" if row.startswith("+") else "del" if row.startswith("-") else "code"
