"""A session's book: the only one who writes, and never a snapshot of what was not kept."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sylph.core import facts
from sylph.core.clock import SystemClock
from sylph.core.errors import LogConflict, StoreError
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.log.event_bus import EventBus
from sylph.engine.log.lease import SessionLease, holder_pid
from sylph.engine.log.store import EventLog
from sylph.engine.turn.session_log import SessionLog, SessionServices


@pytest.fixture
def services(tmp_path: Path) -> Iterator[SessionServices]:
    with closing(EventLog.open(tmp_path / "sylph.db")) as log:
        bus = EventBus(lambda session, after, limit: log.read_events(session, after=after, limit=limit))
        yield SessionServices(
            log=log, bus=bus, clock=SystemClock(), take_lease=lambda id: SessionLease.acquire(tmp_path, id)
        )


async def test_whoever_was_overtaken_does_not_get_to_write(services: SessionServices, tmp_path: Path) -> None:
    one, two = SessionLog("s", services), SessionLog("s", services)
    await one.emit(facts.SessionRenamed(title="one"))
    assert (one.is_current, two.is_current) == (True, False)
    with pytest.raises(LogConflict, match="has grown"):
        two.acquire_lease()
    assert holder_pid(tmp_path, "s") == 0


async def test_facts_that_failed_are_never_in_a_snapshot(services: SessionServices) -> None:
    one, two = SessionLog("s", services), SessionLog("s", services)
    await one.emit(facts.SessionRenamed(title="one"))
    with pytest.raises(LogConflict):
        await two.emit(facts.SessionRenamed(title="two"))
    await two.save_snapshots()
    await one.save_snapshots()
    assert services.log.load_snapshot("s", SESSION_FOLD.name, SESSION_FOLD.version) is not None
    assert SessionLog("s", services).summary.title == "one"


async def test_after_a_failure_a_book_writes_nothing_more(services: SessionServices) -> None:
    book = SessionLog("s", services)
    await book.emit(facts.SessionRenamed(title="one"))
    await services.log.execute_change(lambda db: db.execute("pragma max_page_count = 1"))
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            await book.emit(facts.SessionRenamed(title="x" * 100_000))
    assert not book.is_current
    assert SessionLog("s", services).summary.title == "one"


async def test_a_snapshot_that_cannot_be_kept_does_no_harm(services: SessionServices) -> None:
    book = SessionLog("s", services)
    await book.emit(facts.ContextAdded(topic="x", text="x" * 100_000))
    await services.log.execute_change(lambda db: db.execute("pragma max_page_count = 1"))
    await book.save_snapshots()
    assert services.log.load_snapshot("s", SESSION_FOLD.name, SESSION_FOLD.version) is None
    assert book.is_current


async def test_nothing_to_write_is_nothing_written(services: SessionServices) -> None:
    assert await SessionLog("s", services).emit() == []
    assert services.log.head("s").seq == 0
