"""Forgetting: contents that no session which is still young, and no open checkpoint, refers to any more."""

import fcntl
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from sylph.core.errors import UserError
from sylph.core.events import Fact
from sylph.core.facts.file_change import FILE_FACTS, FilesChanged, FileState, UndoStarted
from sylph.disk.encryption import KeySource, no_key
from sylph.engine.log.hash_chain import LogRecord, event_from_record
from sylph.engine.log.store import RECORD_COLUMNS, EventLog
from sylph.engine.undo.content_store import FileContentStore
from sylph.engine.undo.workspace_tracker import read_scan

DAY = 86_400.0


def is_sweep_due(folder: Path) -> bool:
    """Whether a day has gone by since the last sweep, or since there is anything to sweep."""
    stamp = folder / "contents" / "swept"
    try:
        return time.time() - stamp.stat().st_mtime > DAY
    except FileNotFoundError:
        pass
    if stamp.parent.is_dir():
        stamp.touch(0o600)
    return False


def sweep_contents(log: EventLog, folder: Path, *, days: int, now: int, key: KeySource = no_key) -> int:
    """Drops what nobody needs; returns the bytes that are free now. While calls run anywhere, nothing is dropped."""
    contents = FileContentStore(folder / "contents", key)
    if not contents.folder.is_dir():
        return 0
    with _lock_alone(folder) as alone:
        if not alone:
            return 0
        for path in (folder / "claims").glob("*"):
            path.unlink()
        oldest = now - days * int(DAY) * 1000
        live = {digest for fact in _recent_facts(log, oldest) for digest in fact_digests(fact)}
        return contents.retain_only(live | set(_saved_digests(folder, now / 1000 - days * DAY, key)))


def drop_secret(folder: Path, secret: bytes, key: KeySource = no_key) -> int:
    """Drops every content that holds a secret, whoever needs it; returns how many did."""
    contents = FileContentStore(folder / "contents", key)
    if not contents.folder.is_dir():
        return 0
    with _lock_alone(folder) as alone:
        known = contents.list_digests()
        held = {digest for digest in known if secret in (contents.get(digest) or b"")}
        if held and not alone:
            raise UserError(
                "Copies of files that hold it are kept for undo, and another Sylph is at work on them.",
                kind="session_busy",
                next=["Erase it again when that one is done."],
            )
        if held:
            contents.retain_only(known - held)
        return len(held)


@contextmanager
def _lock_alone(folder: Path) -> Generator[bool]:
    """Whether no call runs anywhere that has a checkpoint; none begins meanwhile."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _try_lock(fd)
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def forget_session(folder: Path, session: str) -> None:
    """Removes the checkpoints of calls that a session left open."""
    for path in (folder / "open").glob(f"*/{session}.*"):
        path.unlink(missing_ok=True)


def fact_digests(fact: Fact) -> Iterator[bytes]:
    """Every content that a fact refers to."""
    changes = fact.changes if isinstance(fact, FilesChanged) else fact.steps if isinstance(fact, UndoStarted) else ()
    states: list[FileState | None] = [state for change in changes for state in (change.before, change.after)]
    yield from (bytes.fromhex(state.digest) for state in states if state and state.digest)


def _recent_facts(log: EventLog, oldest: int) -> Iterator[Fact]:
    """What sessions that were used since `oldest` say of files."""
    wires = ", ".join(f"'{kind.wire}'" for kind in FILE_FACTS)
    young = "select session from event group by session having max(ts) >= ?"
    rows = log.query(f"select {RECORD_COLUMNS} from event where type in ({wires}) and session in ({young})", (oldest,))
    for row in rows:
        body = event_from_record(LogRecord(*row)).body
        if isinstance(body, Fact):
            yield body


def _saved_digests(folder: Path, oldest: float, key: KeySource) -> Iterator[bytes]:
    """What the views of workspaces hold, so that the next look need not read them again."""
    for path in (*(folder / "views").glob("*"), *(folder / "open").glob("*/*")):
        if path.stat().st_mtime < oldest and path.parent.name == "views":
            path.unlink(missing_ok=True)
        elif saved := read_scan(path, key):
            yield from (entry.digest for entry in saved.entries if entry.digest)
