"""The one thread that writes to the store: what waits together is committed together."""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from sylph.core.errors import LogConflict, StoreError
from sylph.engine.log import schema
from sylph.engine.log.crash_points import CrashPointHook, ignore_crash_point
from sylph.engine.log.hash_chain import LogRecord

INSERT_EVENT = "insert into event values (?,?,?,?,?,?,?,?,?,?,?)"
UPSERT_SESSION = (
    "insert into session values (?,?,?) on conflict (id) do update set seq = excluded.seq, hash = excluded.hash"
)
INSERT_BLOB = "insert or ignore into blob values (?,?,?)"
BATCH = 256
# So many ends of logs are remembered, to be quick.
MAX_HEADS = 1000

logger = logging.getLogger(__name__)


class WriteJob(Struct, frozen=True, kw_only=True):
    """Something to commit: records of one session that follow each other, or any other change."""

    done: "asyncio.Future[None]"
    records: Sequence[LogRecord] = ()
    blobs: Sequence[tuple[str, str, bytes]] = ()
    change: Callable[[sqlite3.Connection], object] | None = None
    durable: bool = False


class LogWriter:
    def __init__(self, db: sqlite3.Connection, path: Path, trip: CrashPointHook = ignore_crash_point) -> None:
        self._db, self._path, self._trip = db, path, trip
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._heads: dict[str, int] = {}
        self._sync = ""
        self._thread = threading.Thread(target=self._run_loop, name="sylph-writer", daemon=True)
        self._thread.start()

    def enqueue(self, job: WriteJob) -> None:
        self._jobs.put(job)

    def close(self) -> None:
        """Commits what waits, then ends the thread."""
        self._jobs.put(None)
        self._thread.join()
        self._db.close()

    def _run_loop(self) -> None:
        closing = False
        while not closing:
            batch, closing = self._collect_batch()
            if batch:
                self._commit_batch(batch)

    def _collect_batch(self) -> tuple[list[WriteJob], bool]:
        first = self._jobs.get()
        if first is None:
            return [], True
        batch = [first]
        while len(batch) < BATCH:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _commit_batch(self, batch: list[WriteJob]) -> None:
        error = self._try_commit(batch)
        if error and len(batch) > 1:
            # One bad job must not take its neighbours with it.
            for job in batch:
                _notify_waiters([job], self._try_commit([job]))
            return
        _notify_waiters(batch, error)

    def _try_commit(self, batch: list[WriteJob]) -> StoreError | None:
        try:
            self._set_synchronous("full" if any(job.durable for job in batch) else "normal")
            self._db.execute("begin immediate")
            for job in batch:
                self._apply_job(job)
            self._trip("commit before")
            self._db.execute("commit")
            self._trip("commit after")
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for it, and the thread goes on
            self._heads.clear()
            self._roll_back()
            return self._explain_error(error, batch)
        return None

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("rollback")
        except sqlite3.Error as error:
            logger.warning("no rollback of %s: %s", self._path, error)

    def _apply_job(self, job: WriteJob) -> None:
        for blob in job.blobs:
            self._db.execute(INSERT_BLOB, blob)
        if job.records:
            first, last = job.records[0], job.records[-1]
            if first.seq != self._head_seq(first.session) + 1:
                # What this process wrote last may not be what was written last.
                del self._heads[first.session]
            if first.seq != self._head_seq(first.session) + 1:
                raise _conflict_error(first)
            self._db.executemany(INSERT_EVENT, job.records)
            self._db.execute(UPSERT_SESSION, (last.session, last.seq, last.hash))
            self._heads[last.session] = last.seq
        if job.change:
            job.change(self._db)

    def _head_seq(self, session: str) -> int:
        if session not in self._heads:
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            row = self._db.execute("select seq from session where id = ?", (session,)).fetchone()
            self._heads[session] = row[0] if row else 0
        return self._heads[session]

    def _set_synchronous(self, level: str) -> None:
        if level != self._sync:
            self._db.execute(f"pragma synchronous = {level}")
            self._sync = level

    def _explain_error(self, error: Exception, batch: list[WriteJob]) -> StoreError:
        if isinstance(error, StoreError):
            return error
        records = [job.records[0] for job in batch if job.records]
        if isinstance(error, sqlite3.IntegrityError) and records:
            return _conflict_error(records[0])
        return schema.explain_error(error, self._path)


def _conflict_error(record: LogRecord) -> LogConflict:
    return LogConflict(
        f"Session {record.session} was changed by another process while this one worked on it.",
        details={"session": record.session, "seq": record.seq},
        next=[f"Look at it with `sylph session show {record.session}`, then send your message again."],
    )


def _notify_waiters(batch: list[WriteJob], error: StoreError | None) -> None:
    """Tells every waiting loop at once: one wake-up per batch and loop, not one per event."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
    for job in batch:
        by_loop.setdefault(job.done.get_loop(), []).append(job)
    for loop, jobs in by_loop.items():
        # A loop that has ended waits for nothing any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve_jobs, jobs, error)


def _resolve_jobs(jobs: list[WriteJob], error: StoreError | None) -> None:
    for job in jobs:
        if job.done.done():
            continue
        if error:
            job.done.set_exception(error)
        else:
            job.done.set_result(None)
