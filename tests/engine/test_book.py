"""A session's book: the only one who writes, and never a snapshot of what was not kept."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sylph.core import facts
from sylph.core.clock import SystemClock
from sylph.core.errors import Conflict, StoreError
from sylph.engine.book import Book, Shelf
from sylph.engine.bus import Bus
from sylph.engine.lease import Lease, holder
from sylph.engine.log import Log
from sylph.engine.summary import SUMMARY


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with closing(Log.open(tmp_path / "sylph.db")) as log:
        bus = Bus(lambda session, after, limit: log.read(session, after=after, limit=limit))
        yield Shelf(log=log, bus=bus, clock=SystemClock(), lease=lambda id: Lease.take(tmp_path, id))


async def test_whoever_was_overtaken_does_not_get_to_write(shelf: Shelf, tmp_path: Path) -> None:
    one, two = Book("s", shelf), Book("s", shelf)
    await one.emit(facts.SessionRenamed(title="one"))
    assert (one.current, two.current) == (True, False)
    with pytest.raises(Conflict, match="has grown"):
        two.own()
    assert holder(tmp_path, "s") == 0


async def test_facts_that_failed_are_never_in_a_snapshot(shelf: Shelf) -> None:
    one, two = Book("s", shelf), Book("s", shelf)
    await one.emit(facts.SessionRenamed(title="one"))
    with pytest.raises(Conflict):
        await two.emit(facts.SessionRenamed(title="two"))
    await two.save()
    await one.save()
    assert shelf.log.snapshot("s", SUMMARY.name, SUMMARY.version) is not None
    assert Book("s", shelf).summary.title == "one"


async def test_after_a_failure_a_book_writes_nothing_more(shelf: Shelf) -> None:
    book = Book("s", shelf)
    await book.emit(facts.SessionRenamed(title="one"))
    await shelf.log.change(lambda db: db.execute("pragma max_page_count = 1"))
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            await book.emit(facts.SessionRenamed(title="x" * 100_000))
    assert not book.current
    assert Book("s", shelf).summary.title == "one"


async def test_a_snapshot_that_cannot_be_kept_does_no_harm(shelf: Shelf) -> None:
    book = Book("s", shelf)
    await book.emit(facts.ContextAdded(topic="x", text="x" * 100_000))
    await shelf.log.change(lambda db: db.execute("pragma max_page_count = 1"))
    await book.save()
    assert shelf.log.snapshot("s", SUMMARY.name, SUMMARY.version) is None
    assert book.current


async def test_nothing_to_write_is_nothing_written(shelf: Shelf) -> None:
    assert await Book("s", shelf).emit() == []
    assert shelf.log.head("s").seq == 0
