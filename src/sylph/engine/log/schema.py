"""The tables of the embedded store, and how a connection to it is opened."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sylph.core.errors import StoreError

SCHEMA_VERSION = 1

# What the index of turns covers; a question in exactly these words is answered by it.
TURN_TYPES = "type in ('turn.started', 'turn.resumed', 'turn.ended', 'input.received')"

SCHEMA = f"""
create table if not exists event (
    session text not null, seq integer not null, v integer not null, turn text not null, ts integer not null,
    type text not null, actor text not null, cause integer not null, data blob not null, salt blob not null,
    hash blob not null, primary key (session, seq)
) without rowid;
create index if not exists event_turns on event (session, seq)
    where {TURN_TYPES};
create table if not exists session (
    id text primary key, seq integer not null, hash blob not null
) without rowid;
create table if not exists fold (
    session text not null, name text not null, version integer not null, seq integer not null, state blob not null,
    primary key (session, name)
) without rowid;
create table if not exists blob (
    session text not null, digest text not null, bytes blob not null, primary key (session, digest)
);
"""

BUSY_SECONDS = 10.0


def connect_writable(path: Path) -> sqlite3.Connection:
    """A connection that can write; makes the file and its tables if they are not there."""
    # The log holds what you say and what your files hold: nobody else's business. SQLite's other files follow suit.
    path.touch(mode=0o600, exist_ok=True)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        (version,) = db.execute("pragma user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"The store was written by a newer Sylph (format {version}, this one knows {SCHEMA_VERSION}).",
                kind="store_newer",
                details={"path": path},
                next=["Update Sylph, or point SYLPH_DATA at another folder."],
            )
        db.execute("pragma journal_mode = wal")
        db.execute("pragma journal_size_limit = 67108864")
        if version < SCHEMA_VERSION:
            db.executescript(SCHEMA)
            db.execute(f"pragma user_version = {SCHEMA_VERSION}")
    except BaseException:
        db.close()
        raise
    return db


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection for a store that cannot be written: a read-only disk, somebody else's file."""
    try:
        return _connect_uri(path, "mode=ro")
    except sqlite3.OperationalError:
        wal = path.with_name(f"{path.name}-wal")
        if wal.is_file() and wal.stat().st_size:
            # The newest facts stand in there: not to see them would be worse than to see nothing.
            raise
        # Without a place for the shared-memory file only an immutable look is possible.
        return _connect_uri(path, "immutable=1")


def _connect_uri(path: Path, how: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{how}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        db.execute("select count(*) from session").fetchone()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def lenient_text(db: sqlite3.Connection) -> Generator[sqlite3.Connection, None, None]:
    """Reads text that is not quite text."""
    db.text_factory = decode_text
    try:
        yield db
    finally:
        db.text_factory = str


def decode_text(raw: bytes) -> str:
    """What is no UTF-8 becomes �."""
    return raw.decode("utf-8", "replace")


def is_write_forbidden(error: sqlite3.Error) -> bool:
    """Whether it is about not being allowed to write, or to open at all."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def explain_error(error: Exception, path: Path) -> StoreError:
    """SQLite's complaint as something a person can act on."""
    text = str(error)
    details = {"path": path, "cause": text}
    if "full" in text:
        return StoreError(
            "The disk is full: nothing more can be written.",
            kind="store_full",
            details=details,
            next=["Free some space, then run `sylph resume`: everything acknowledged so far is kept."],
        )
    if "readonly" in text or "read-only" in text:
        return StoreError(
            "The store cannot be written.",
            kind="store_read_only",
            details=details,
            next=[f"Check the permissions of {path}.", "Point SYLPH_DATA at a folder that can be written."],
        )
    if "locked" in text or "busy" in text:
        return StoreError(
            f"Another program held the store for more than {BUSY_SECONDS:.0f} s.",
            kind="store_busy",
            details=details,
            next=["End the program that holds it, then try again: nothing was lost."],
        )
    if "malformed" in text or "not a database" in text or "corrupt" in text:
        aside = path.parent / "damaged"
        return StoreError(
            "The store is damaged.",
            kind="store_damaged",
            details=details,
            next=[
                f"Move all of its parts away: `mkdir {aside} && mv {path}* {aside}`. Sylph then begins anew.",
                "Bring back what you have of it: a backup of the file, or exports with `sylph session import`.",
                f"What can still be read of it: `sqlite3 {aside / path.name} .recover`.",
            ],
        )
    return StoreError(
        f"The store could not be used: {text}.",
        kind="store_failed",
        details=details,
        next=[f"Check that {path.parent} exists, is yours and has space.", "Run `sylph doctor`."],
    )
