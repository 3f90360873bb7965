"""What each turn changed, as a person reads it: files, lines added and removed, and the differences themselves."""

from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.changes import FileChange, FileState, shown
from sylph.engine.undo.contents import Contents
from sylph.engine.undo.ledger import Ledger, Made

# Beyond these a line-by-line comparison takes longer than anybody waits.
LINES, COMPARED = 6000, 300
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


def turns(ledger: Ledger, contents: Contents) -> list[TurnDiff]:
    """Every turn that changed something, in order."""
    by_turn: dict[str, list[Made]] = {turn: [] for turn in ledger.gaps}
    for made in ledger.made:
        by_turn.setdefault(made.turn, []).append(made)
    found = [
        TurnDiff(turn=turn, files=tuple(_files(made, contents)), gaps=tuple(dict.fromkeys(ledger.gaps.get(turn, ()))))
        for turn, made in by_turn.items()
    ]
    return [each for each in found if each.files or each.gaps]


def _files(made: Sequence[Made], contents: Contents) -> Iterator[FileDiff]:
    lines: dict[str, list[Made]] = {}
    for each in made:
        lines.setdefault(each.change.path, []).append(each)
    for number, (path, line) in enumerate(sorted(lines.items())):
        change = FileChange(path=path, before=line[0].change.before, after=line[-1].change.after)
        if change.before == change.after:
            continue
        yield diff_of(change, contents, undone=all(each.undone for each in line), compare=number < COMPARED)


def of_steps(steps: Sequence[FileChange], contents: Contents) -> tuple[FileDiff, ...]:
    """How files change by an undo."""
    return tuple(diff_of(step, contents, compare=number < COMPARED) for number, step in enumerate(steps))


def diff_of(change: FileChange, contents: Contents, *, undone: bool = False, compare: bool = True) -> FileDiff:
    """One change, with what differs where both sides are text and kept."""
    name, old, new = shown(change.path), change.before, change.after
    plain = FileDiff(path=name, what=_what(old, new), undone=undone)
    if not any(state and state.kind == "file" for state in (old, new)) or _same_content(old, new):
        return msgspec.structs.replace(plain, note=_aside(old, new))
    if not compare:
        return plain
    sides = [_text(state, contents) for state in (old, new)]
    faults = [side for side in sides if isinstance(side, str)]
    if faults:
        return msgspec.structs.replace(plain, note=faults[0])
    before, after = (side if isinstance(side, list) else [] for side in sides)
    if len(before) + len(after) > LINES:
        note = f"{len(before)} lines become {len(after)}: too long to compare"
        return msgspec.structs.replace(plain, note=note)
    rows = _unified(name, before, after, old, new)
    added = sum(row.startswith("+") for row in rows[2:])
    removed = sum(row.startswith("-") for row in rows[2:])
    return msgspec.structs.replace(
        plain, added=added, removed=removed, note=_aside(old, new), diff="\n".join(rows)
    )  # fmt: skip


def _unified(name: str, before: list[str], after: list[str], old: FileState | None, new: FileState | None) -> list[str]:
    import difflib

    head = ("/dev/null" if old is None else f"a/{name}", "/dev/null" if new is None else f"b/{name}")
    return list(difflib.unified_diff(before, after, *head, lineterm=""))


def _text(state: FileState | None, contents: Contents) -> list[str] | str:
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


def _what(old: FileState | None, new: FileState | None) -> str:
    if old is None:
        return "created"
    return "deleted" if new is None else "changed"


def _aside(old: FileState | None, new: FileState | None) -> str:
    """What is not in the lines: the kind, the mode, where a link leads."""
    said: list[str] = []
    if old and new and old.kind != new.kind:
        said.append(f"{old.kind} → {new.kind}")
    elif (one := new or old) and one.kind != "file":
        said.append(one.kind)
    if new and new.kind == "link":
        said.append(f"→ {shown(new.target)}")
    if old and new and old.kind == new.kind and old.mode != new.mode:
        said.append(f"mode {old.mode:04o} → {new.mode:04o}")
    return ", ".join(said)
