"""Changed files as a person reads them: a line for each, and the differences where they are asked for. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from sylph.core.facts.file_change import FilesRestored, SkippedFile, display_path
from sylph.core.text.formatting import count_noun
from sylph.engine.undo.turn_diff import FileDiff, TurnDiff
from sylph.interfaces.text.render import StyledLine, TextSpan, TextStyle, styled_line
from sylph.interfaces.text.sanitize import sanitize_text

MARKS = {"created": "A", "deleted": "D", "changed": "M"}
BRIEF = 20
ROWS = 400


def turn_change_lines(turn: TurnDiff, *, diff: bool = False) -> Iterator[StyledLine]:
    """What a turn changed: a list, short unless the differences are asked for."""
    if turn.files:
        undone = all(file.undone for file in turn.files)
        yield styled_line(f"{count_noun(len(turn.files), 'path')} changed{', undone since' if undone else ''}:", "dim")
    yield from file_change_lines(turn.files, diff=diff)
    yield from undo_gap_lines(turn.gaps)


def file_change_lines(files: Sequence[FileDiff], *, diff: bool = False) -> Iterator[StyledLine]:
    brief = files if diff else files[:BRIEF]
    for file in brief:
        yield _file_line(file)
        if diff and file.diff:
            yield from diff_lines(file.diff)
    if len(files) > len(brief):
        yield styled_line(f"    … {count_noun(len(files) - len(brief), 'path')} more (--diff)", "dim")


def diff_lines(text: str) -> Iterator[StyledLine]:
    rows = [sanitize_text(row) for row in text.split("\n")]
    yield from (styled_line(f"    {row}", _diff_style(row)) for row in rows[:ROWS])
    if len(rows) > ROWS:
        yield styled_line(f"    … {count_noun(len(rows) - ROWS, 'line')} more", "dim")


def undo_gap_lines(gaps: Iterable[str]) -> Iterator[StyledLine]:
    kept = list(gaps)
    yield from (styled_line(f"    ! {sanitize_text(gap)}", "warn") for gap in kept[:BRIEF])
    if len(kept) > BRIEF:
        yield styled_line(f"    ! … and {len(kept) - BRIEF} more that cannot be undone", "warn")


def restored_lines(done: FilesRestored) -> Iterator[StyledLine]:
    """What an undo came to."""
    yield styled_line(f"{count_noun(len(done.restored), 'path')} restored", "ok")
    if done.left:
        yield styled_line(
            f"{count_noun(len(done.left), 'path')} left as it is:"
            if len(done.left) == 1
            else f"{count_noun(len(done.left), 'path')} left as they are:",
            "warn",
        )
        yield from skipped_lines(done.left)


def skipped_lines(left: Sequence[SkippedFile]) -> Iterator[StyledLine]:
    yield from (
        styled_line(f"    ! {sanitize_text(display_path(each.path))}: {sanitize_text(each.why)}", "warn")
        for each in left[:BRIEF]
    )
    if len(left) > BRIEF:
        yield styled_line(f"    ! … and {count_noun(len(left) - BRIEF, 'path')} more", "warn")


def _file_line(file: FileDiff) -> StyledLine:
    sums = f"  +{file.added} -{file.removed}" if file.added is not None else ""
    note = f"  ({sanitize_text(file.note)})" if file.note else ""
    undone = "  undone" if file.undone else ""
    return (TextSpan(f"    {MARKS[file.what]} {sanitize_text(file.path)}"), TextSpan(f"{sums}{note}{undone}", "dim"))


def _diff_style(row: str) -> TextStyle:
    if row.startswith(("+++", "---", "@@")):
        return "dim"
    return "add" if row.startswith("+") else "del" if row.startswith("-") else "code"
