"""Forgetting: contents that no session which is still young, and no open checkpoint, refers to any more."""

import fcntl
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from sylph.core.changes import FILE_FACTS, FilesChanged, FileState, UndoStarted
from sylph.core.errors import UserError
from sylph.core.events import Fact
from sylph.engine.log import COLUMNS, Log
from sylph.engine.seal import Record, event_of
from sylph.engine.sealed import Key, unsealed
from sylph.engine.undo.contents import Contents
from sylph.engine.undo.place import read

DAY = 86_400.0


def due(folder: Path) -> bool:
    """Whether a day has gone by since the last sweep, or since there is anything to sweep."""
    stamp = folder / "contents" / "swept"
    try:
        return time.time() - stamp.stat().st_mtime > DAY
    except FileNotFoundError:
        pass
    if stamp.parent.is_dir():
        stamp.touch(0o600)
    return False


def sweep(log: Log, folder: Path, *, days: int, now: int, key: Key = unsealed) -> int:
    """Drops what nobody needs; returns the bytes that are free now. While calls run anywhere, nothing is dropped."""
    contents = Contents(folder / "contents", key)
    if not contents.folder.is_dir():
        return 0
    with _alone(folder) as alone:
        if not alone:
            return 0
        for path in (folder / "claims").glob("*"):
            path.unlink()
        oldest = now - days * int(DAY) * 1000
        live = {digest for fact in _facts(log, oldest) for digest in digests(fact)}
        return contents.keep(live | set(_viewed(folder, now / 1000 - days * DAY, key)))


def drop(folder: Path, secret: bytes, key: Key = unsealed) -> int:
    """Drops every content that holds a secret, whoever needs it; returns how many did."""
    contents = Contents(folder / "contents", key)
    if not contents.folder.is_dir():
        return 0
    with _alone(folder) as alone:
        known = contents.digests()
        held = {digest for digest in known if secret in (contents.get(digest) or b"")}
        if held and not alone:
            raise UserError(
                "Copies of files that hold it are kept for undo, and another Sylph is at work on them.",
                kind="session_busy",
                next=["Erase it again when that one is done."],
            )
        if held:
            contents.keep(known - held)
        return len(held)


@contextmanager
def _alone(folder: Path) -> Generator[bool]:
    """Whether no call runs anywhere that has a checkpoint; none begins meanwhile."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _taken(fd)
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def forget(folder: Path, session: str) -> None:
    """Removes the checkpoints of calls that a session left open."""
    for path in (folder / "open").glob(f"*/{session}.*"):
        path.unlink(missing_ok=True)


def digests(fact: Fact) -> Iterator[bytes]:
    """Every content that a fact refers to."""
    changes = fact.changes if isinstance(fact, FilesChanged) else fact.steps if isinstance(fact, UndoStarted) else ()
    states: list[FileState | None] = [state for change in changes for state in (change.before, change.after)]
    yield from (bytes.fromhex(state.digest) for state in states if state and state.digest)


def _facts(log: Log, oldest: int) -> Iterator[Fact]:
    """What sessions that were used since `oldest` say of files."""
    wires = ", ".join(f"'{kind.wire}'" for kind in FILE_FACTS)
    young = "select session from event group by session having max(ts) >= ?"
    rows = log.query(f"select {COLUMNS} from event where type in ({wires}) and session in ({young})", (oldest,))
    for row in rows:
        body = event_of(Record(*row)).body
        if isinstance(body, Fact):
            yield body


def _viewed(folder: Path, oldest: float, key: Key) -> Iterator[bytes]:
    """What the views of workspaces hold, so that the next look need not read them again."""
    for path in (*(folder / "views").glob("*"), *(folder / "open").glob("*/*")):
        if path.stat().st_mtime < oldest and path.parent.name == "views":
            path.unlink(missing_ok=True)
        elif saved := read(path, key):
            yield from (entry.digest for entry in saved.entries if entry.digest)
