"""The append-only record of every session; the only source of truth."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from sylph.core.errors import ErrorReport, LogConflict, StoreError
from sylph.core.events import Event, Fact, LogHead
from sylph.core.facts.turn import InputReceived
from sylph.engine.log import schema
from sylph.engine.log.crash_points import CrashPointHook, ignore_crash_point
from sylph.engine.log.hash_chain import (
    LogRecord,
    PendingFact,
    RecordSealer,
    decode_fact,
    event_from_record,
    sanitize_fact,
    seal_record,
)
from sylph.engine.log.writer import LogWriter, WriteJob

# The casts make sure of what a row is made of, even after somebody edited it by hand.
RECORD_COLUMNS = (
    "session, seq, cast(v as integer), cast(turn as text), cast(ts as integer), cast(type as text), "
    "cast(actor as text), cast(cause as integer), cast(data as blob), cast(salt as blob), cast(hash as blob)"
)
# What a fold goes by.
FOLD_COLUMNS = (
    "seq, cast(v as integer), cast(turn as text), cast(ts as integer), cast(type as text), "
    "cast(actor as text), cast(cause as integer), cast(data as blob)"
)
# Something else in the place of a number has no place in an order.
VALID_SEQ = "typeof(seq) = 'integer'"
EMPTY_HEAD = LogHead()
F = TypeVar("F", bound=Fact)


class AppendResult(NamedTuple):
    """Facts that have their place in the log, and when they are safe there."""

    events: list[Event]
    done: "asyncio.Future[None]"


class EventLog:
    """Appends through one writer thread; reads on connections of their own, which never wait for it."""

    def __init__(
        self, path: Path, reader: sqlite3.Connection, writer: LogWriter | None, sealer: RecordSealer = seal_record
    ) -> None:
        self.path = path
        self._seal = sealer
        self._reader = reader
        self._writer = writer
        self._heads: dict[str, LogHead] = {}
        self._closed = False
        self.redactor: Callable[[Fact], Fact] = lambda fact: fact
        """What every fact goes through before it is written."""

    @classmethod
    def open(cls, path: Path, sealer: RecordSealer = seal_record, trip: CrashPointHook = ignore_crash_point) -> Self:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            reader = schema.connect_writable(path)
            return cls(path, reader, LogWriter(schema.connect_writable(path), path, trip), sealer)
        except OSError as error:
            return cls._open_readonly(path, error)
        except sqlite3.Error as error:
            if not schema.is_write_forbidden(error):
                raise schema.explain_error(error, path) from error
            return cls._open_readonly(path, error)

    @classmethod
    def _open_readonly(cls, path: Path, cause: Exception) -> Self:
        """Looks at what cannot be written: a read-only disk, somebody else's file."""
        try:
            return cls(path, schema.connect_readonly(path), None)
        except sqlite3.Error as error:
            raise _open_error(path, cause) from error

    @property
    def read_only(self) -> bool:
        return self._writer is None

    def close(self) -> None:
        """Returns when everything that waits is kept."""
        self._closed = True
        if self._writer:
            self._writer.close()
        self._reader.close()

    def append(
        self,
        session: str,
        drafts: Sequence[PendingFact],
        *,
        expected: int,
        durable: bool = True,
        blobs: Sequence[tuple[str, bytes]] = (),
    ) -> AppendResult:
        """Adds `drafts` after the fact `expected`, all or none.

        The order is fixed when this returns; `done` is set when they are all kept, or to the error that kept none.
        """
        head = self._heads.get(session)
        if head is None or head.seq != expected:
            # What this process wrote last may not be what was written last.
            head = self.head(session)
        if head.seq != expected:
            raise _conflict_error(session, head.seq, expected)
        drafts = [draft._replace(fact=self.redactor(draft.fact)) for draft in drafts]
        try:
            records, head = self._chain_records(session, head, drafts)
        except UnicodeEncodeError:
            drafts = [draft._replace(fact=sanitize_fact(draft.fact)) for draft in drafts]
            records, head = self._chain_records(session, head, drafts)
        kept = [(session, digest, data) for digest, data in blobs]
        job = WriteJob(done=_new_future(), records=records, blobs=kept, durable=durable)
        self._enqueue_job(job)
        self._heads[session] = head
        job.done.add_done_callback(lambda done: self._on_written(session, done))
        return AppendResult(
            [_event_from_draft(record, draft) for record, draft in zip(records, drafts, strict=True)], job.done
        )

    def _chain_records(
        self, session: str, head: LogHead, drafts: Sequence[PendingFact]
    ) -> tuple[list[LogRecord], LogHead]:
        records: list[LogRecord] = []
        for draft in drafts:
            record = self._seal(session, head, draft)
            records.append(record)
            head = LogHead(record.seq, record.hash.hex())
        return records, head

    def _on_written(self, session: str, done: "asyncio.Future[None]") -> None:
        if done.cancelled() or done.exception():
            self._heads.pop(session, None)

    async def execute_change(self, change: Callable[[sqlite3.Connection], object], *, durable: bool = False) -> None:
        """Any other change to the store, in the writer's own order."""
        await self._submit_job(WriteJob(done=_new_future(), change=change, durable=durable))

    async def install_records(self, records: Sequence[LogRecord], blobs: Sequence[tuple[str, str, bytes]]) -> None:
        """Adds records that were sealed elsewhere, as they are."""
        await self._submit_job(WriteJob(done=_new_future(), records=records, blobs=blobs, durable=True))

    def head(self, session: str) -> LogHead:
        row = self._query_one("select cast(seq as integer), cast(hash as blob) from session where id = ?", (session,))
        return LogHead(row[0], row[1].hex()) if row else EMPTY_HEAD

    def all_heads(self) -> dict[str, int]:
        """Every session with the number of its last fact."""
        return dict(self.query("select id, cast(seq as integer) from session", ()))

    def data_version(self) -> int:
        """Another one after every change, whichever process made it."""
        return self.query("pragma data_version", ())[0][0]

    def forget_session(self, session: str) -> None:
        """Lets go of what is remembered of a session only to be quick."""
        self._heads.pop(session, None)

    def read_events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return [event_from_record(record) for record in self.read_records(session, after=after, limit=limit)]

    def iter_events(self, session: str, *, after: int = 0, limit: int = 1000) -> Iterator[Event]:
        """As `read`, for those who keep none of it: without the hashes, and each made only when it is its turn."""
        rows = self.query(
            f"select {FOLD_COLUMNS} from event where session = ? and seq > ? and {VALID_SEQ} order by seq limit ?",
            (session, after, limit),
        )
        for seq, v, turn, ts, type_, actor, cause, data in rows:
            body = decode_fact(type_, v, data)
            yield Event(session=session, seq=seq, ts=ts, body=body, turn=turn, actor=actor, cause=cause)

    def stale_snapshots(self, name: str, version: int, by: int, session: str = "") -> list[str]:
        """The sessions, or whether it is this one, whose snapshot is missing or more than so many facts old."""
        only = "" if not session else " and session.id = ?"
        rows = self.query(
            "select session.id from session left join fold on fold.session = session.id and fold.name = ?"
            f" and fold.version = ? where session.seq - coalesce(fold.seq, 0) > ?{only}",
            (name, version, by, session) if session else (name, version, by),
        )
        return [row[0] for row in rows]

    def read_records(self, session: str, *, after: int = 0, limit: int = 1000) -> list[LogRecord]:
        rows = self.query(
            f"select {RECORD_COLUMNS} from event where session = ? and seq > ? and {VALID_SEQ} order by seq limit ?",
            (session, after, limit),
        )
        return [LogRecord(*row) for row in rows]

    def find_facts(self, session: str, kind: type[F], text: str = "") -> list[tuple[int, str, F]]:
        """The facts of one kind that can be read and hold `text`, the newest first, each with its seq and turn."""
        rows = self.query(
            f"select {RECORD_COLUMNS} from event where session = ? and cast(type as text) = ? "
            f"and instr(data, ?) and {VALID_SEQ}"
            " order by seq desc",
            (session, kind.wire, text.encode()),
        )
        events = (event_from_record(LogRecord(*row)) for row in rows)
        return [(event.seq, event.turn, event.body) for event in events if isinstance(event.body, kind)]

    def read_events_of(
        self, session: str, kinds: Sequence[type[Fact]], *, after: int = 0, limit: int = -1
    ) -> list[Event]:
        """The facts of some kinds, the oldest first."""
        rows = self.query(
            f"select {RECORD_COLUMNS} from event where session = ? "
            f"and type in ({', '.join('?' * len(kinds))}) and {VALID_SEQ}"
            " and seq > ? order by seq limit ?",
            (session, *(kind.wire for kind in kinds), after, limit),
        )
        return [event_from_record(LogRecord(*row)) for row in rows]

    def find_keyed_inputs(self, key: str) -> list[tuple[str, int, InputReceived]]:
        """Every message that was kept under a key, in any session, the latest first."""
        needle = b'"key":' + msgspec.json.encode(key)
        rows = self.query(
            f"select {RECORD_COLUMNS} from event where {schema.TURN_TYPES} and type = ? "
            f"and instr(data, ?) and {VALID_SEQ}"
            " order by ts desc",
            (InputReceived.wire, needle),
        )
        events = (event_from_record(LogRecord(*row)) for row in rows)
        found = [(event.session, event.seq, event.body) for event in events if isinstance(event.body, InputReceived)]
        return [each for each in found if each[2].key == key]

    def load_blob(self, session: str, digest: str) -> bytes | None:
        row = self._query_one(
            "select cast(bytes as blob) from blob where session = ? and digest = ?", (session, digest)
        )
        return row[0] if row else None

    def load_snapshot(self, session: str, name: str, version: int) -> tuple[int, bytes] | None:
        row = self._query_one(
            "select seq, state from fold where session = ? and name = ? and version = ?", (session, name, version)
        )
        return (row[0], row[1]) if row else None

    def load_snapshots(
        self, name: str, version: int, only: Sequence[str] | None = None
    ) -> list[tuple[str, int, int, bytes | None]]:
        """Every session, or only some, with the end of its log and the newest snapshot of one fold."""
        some = "" if only is None else f" where session.id in ({', '.join('?' * len(only))})"
        rows = self.query(
            "select session.id, session.seq, fold.seq, fold.state from session left join fold"
            f" on fold.session = session.id and fold.name = ? and fold.version = ?{some}",
            (name, version, *(only or ())),
        )
        return [(id, head, seq or 0, state) for id, head, seq, state in rows]

    async def save_snapshot(self, session: str, name: str, version: int, seq: int, state: bytes) -> None:
        row = (session, name, version, seq, state)
        await self.execute_change(lambda db: db.execute("insert or replace into fold values (?,?,?,?,?)", row))

    async def purge_session(self, session: str) -> None:
        """Deletes every trace of a session."""

        def delete(db: sqlite3.Connection) -> None:
            for table, column in (("event", "session"), ("fold", "session"), ("blob", "session"), ("session", "id")):
                db.execute(f"delete from {table} where {column} = ?", (session,))

        await self.execute_change(delete, durable=True)
        self._heads.pop(session, None)

    async def scrub_file(self) -> None:
        """Rewrites the file, so that nothing of what was overwritten or deleted can be found in it any more."""

        def rewrite() -> None:
            db = schema.connect_writable(self.path)
            try:
                db.execute("vacuum")
                db.execute("pragma wal_checkpoint(truncate)")
            except sqlite3.Error as error:
                raise schema.explain_error(error, self.path) from error
            finally:
                db.close()

        await asyncio.to_thread(rewrite)

    def check_integrity(self) -> list[ErrorReport]:
        """SQLite's own look at the file."""
        try:
            rows = self.query("pragma quick_check(20)", ())
        except StoreError as error:
            return [error.trouble]
        return [ErrorReport("store_damaged", str(row[0])) for row in rows if row[0] != "ok"]

    def session_ids(self, beginning: str = "") -> list[str]:
        rows = self.query(
            "select id from session where id >= ? and substr(id, 1, ?) = ?", (beginning, len(beginning), beginning)
        )
        return [row[0] for row in rows]

    def all_session_ids(self) -> list[str]:
        """Every session that has left anything here, known to the list of sessions or not."""
        rows = self.query("select id from session union select session from event order by 1", ())
        return [row[0] for row in rows]

    def query(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            if "decode to UTF-8" not in str(error):
                raise schema.explain_error(error, self.path) from error
            # A damaged name costs its record, not the session.
            with schema.lenient_text(self._reader) as reader:
                return reader.execute(sql, values).fetchall()

    def _query_one(self, sql: str, values: Sequence[object]) -> tuple[Any, ...] | None:
        rows = self.query(sql, values)
        return rows[0] if rows else None

    async def _submit_job(self, job: WriteJob) -> None:
        self._enqueue_job(job)
        # Cancelling the caller takes nothing back: the writer goes on.
        await asyncio.shield(job.done)

    def _enqueue_job(self, job: WriteJob) -> None:
        if self._closed:
            raise StoreError("The store has been closed.", kind="store_closed", details={"path": self.path})
        if self._writer is None:
            raise StoreError(
                "The store can only be read.",
                kind="store_read_only",
                details={"path": self.path},
                next=[f"Check the permissions of {self.path.parent}.", "Point SYLPH_DATA at a writable folder."],
            )
        self._writer.enqueue(job)


def _conflict_error(session: str, head: int, expected: int) -> LogConflict:
    return LogConflict(
        f"Session {session} is at fact {head}, not at {expected}.",
        details={"session": session, "head": head, "expected": expected},
        next=["Read the session again and decide anew."],
    )


def _new_future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


def _event_from_draft(record: LogRecord, draft: PendingFact) -> Event:
    return Event(
        session=record.session,
        seq=record.seq,
        ts=record.ts,
        body=draft.fact,
        turn=record.turn,
        actor=record.actor,
        cause=record.cause,
        hash=record.hash.hex(),
    )


def _open_error(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"The store at {path} could not be opened: {error}.",
        kind="store_unopened",
        details={"path": path},
        next=["Check that the folder exists and is yours.", "Point SYLPH_DATA at a folder that can be written."],
    )
