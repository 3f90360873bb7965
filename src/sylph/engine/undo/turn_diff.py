"""What each turn changed, as a person reads it: files, lines added and removed, and the differences themselves."""

from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.facts.file_change import FileChange, FileState, display_path
from sylph.engine.undo.change_history import ChangeHistory, RecordedChange
from sylph.engine.undo.content_store import FileContentStore

# Beyond these a line-by-line comparison takes longer than anybody waits.
MAX_LINES, MAX_COMPARED = 6000, 300
BINARY = b"\0"


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One file. `added` and `removed` are lines; None where they cannot be counted, and `note` says why."""

    path: str
    what: str
    added: int | None = None
    removed: int | None = None
    note: str = ""
    undone: bool = False
    diff: str = ""


class TurnDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn changed from its beginning to its end, and what of that is not covered."""

    turn: str
    files: tuple[FileDiff, ...]
    gaps: tuple[str, ...] = ()


def diff_turns(ledger: ChangeHistory, contents: FileContentStore) -> list[TurnDiff]:
    """Every turn that changed something, in order."""
    by_turn: dict[str, list[RecordedChange]] = {turn: [] for turn in ledger.gaps}
    for made in ledger.changes:
        by_turn.setdefault(made.turn, []).append(made)
    found = [
        TurnDiff(
            turn=turn, files=tuple(_diff_files(made, contents)), gaps=tuple(dict.fromkeys(ledger.gaps.get(turn, ())))
        )
        for turn, made in by_turn.items()
    ]
    return [each for each in found if each.files or each.gaps]


def _diff_files(made: Sequence[RecordedChange], contents: FileContentStore) -> Iterator[FileDiff]:
    lines: dict[str, list[RecordedChange]] = {}
    for each in made:
        lines.setdefault(each.change.path, []).append(each)
    for number, (path, line) in enumerate(sorted(lines.items())):
        change = FileChange(path=path, before=line[0].change.before, after=line[-1].change.after)
        if change.before == change.after:
            continue
        yield diff_change(change, contents, undone=all(each.undone for each in line), compare=number < MAX_COMPARED)


def diff_steps(steps: Sequence[FileChange], contents: FileContentStore) -> tuple[FileDiff, ...]:
    """How files change by an undo."""
    return tuple(diff_change(step, contents, compare=number < MAX_COMPARED) for number, step in enumerate(steps))


def diff_change(
    change: FileChange, contents: FileContentStore, *, undone: bool = False, compare: bool = True
) -> FileDiff:
    """One change, with what differs where both sides are text and kept."""
    name, old, new = display_path(change.path), change.before, change.after
    plain = FileDiff(path=name, what=_change_kind(old, new), undone=undone)
    if not any(state and state.kind == "file" for state in (old, new)) or _same_content(old, new):
        return msgspec.structs.replace(plain, note=_describe_metadata(old, new))
    if not compare:
        return plain
    sides = [_read_text_lines(state, contents) for state in (old, new)]
    faults = [side for side in sides if isinstance(side, str)]
    if faults:
        return msgspec.structs.replace(plain, note=faults[0])
    before, after = (side if isinstance(side, list) else [] for side in sides)
    if len(before) + len(after) > MAX_LINES:
        note = f"{len(before)} lines become {len(after)}: too long to compare"
        return msgspec.structs.replace(plain, note=note)
    rows = _unified_diff(name, before, after, old, new)
    added = sum(row.startswith("+") for row in rows[2:])
    removed = sum(row.startswith("-") for row in rows[2:])
    return msgspec.structs.replace(
        plain, added=added, removed=removed, note=_describe_metadata(old, new), diff="\n".join(rows)
    )  # fmt: skip


def _unified_diff(
    name: str, before: list[str], after: list[str], old: FileState | None, new: FileState | None
) -> list[str]:
    import difflib

    head = ("/dev/null" if old is None else f"a/{name}", "/dev/null" if new is None else f"b/{name}")
    return list(difflib.unified_diff(before, after, *head, lineterm=""))


def _read_text_lines(state: FileState | None, contents: FileContentStore) -> list[str] | str:
    """The lines of a file; or, as one text, why there are none to show."""
    if state is None or state.kind != "file":
        return []
    if not state.digest:
        return f"{state.size:,} bytes, not kept"
    data = contents.get(bytes.fromhex(state.digest))
    if data is None:
        return "its content is not kept here"
    if BINARY in data[:8000]:
        return f"binary, {state.size:,} bytes"
    return data.decode("utf-8", "replace").splitlines()


def _same_content(old: FileState | None, new: FileState | None) -> bool:
    return (
        old is not None and new is not None and old.kind == new.kind and bool(old.digest) and old.digest == new.digest
    )


def _change_kind(old: FileState | None, new: FileState | None) -> str:
    if old is None:
        return "created"
    return "deleted" if new is None else "changed"


def _describe_metadata(old: FileState | None, new: FileState | None) -> str:
    """What is not in the lines: the kind, the mode, where a link leads."""
    said: list[str] = []
    if old and new and old.kind != new.kind:
        said.append(f"{old.kind} → {new.kind}")
    elif (one := new or old) and one.kind != "file":
        said.append(one.kind)
    if new and new.kind == "link":
        said.append(f"→ {display_path(new.target)}")
    if old and new and old.kind == new.kind and old.mode != new.mode:
        said.append(f"mode {old.mode:04o} → {new.mode:04o}")
    return ", ".join(said)
