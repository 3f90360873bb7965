"""The log keeps what it says it keeps: in order, all or nothing, on the disk, and readable whatever happens."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from sylph.core import facts
from sylph.core.errors import ErrorReport, LogConflict, StoreError
from sylph.core.events import Fact, UnreadableRecord
from sylph.engine.folds import fold
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.log import schema, verify
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.runtime.runtime import Runtime, RuntimeParts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sylph.db"


@pytest.fixture
def log(path: Path) -> Iterator[EventLog]:
    with closing(EventLog.open(path)) as log:
        yield log


def _drafts(*new: Fact) -> list[PendingFact]:
    return [PendingFact(fact, 1_700_000_000_000, "", "user", 0) for fact in new]


def _title(text: str) -> facts.SessionRenamed:
    return facts.SessionRenamed(title=text)


async def _write(log: EventLog, session: str, *titles: str, durable: bool = False) -> None:
    """One fact per title, in one batch."""
    drafts = _drafts(*map(_title, titles))
    await log.append(session, drafts, expected=log.head(session).seq, durable=durable).done


def _titles(log: EventLog, session: str) -> list[str]:
    bodies = [event.body for event in log.read_events(session)]
    return [body.title if isinstance(body, facts.SessionRenamed) else "?" for body in bodies]


def _edit(path: Path, sql: str, *values: object) -> None:
    """What somebody does to the file by hand."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql, values)
        db.commit()


async def test_facts_come_back_as_they_went_in(log: EventLog) -> None:
    await _write(log, "s", "one", "two")
    first, second = log.read_events("s")
    assert (first.seq, second.seq, first.body) == (1, 2, _title("one"))
    assert log.head("s").hash == second.hash != first.hash


async def test_only_the_expected_place_is_written_to(log: EventLog) -> None:
    await _write(log, "s", "one")
    for wrong in (0, 2):
        with pytest.raises(LogConflict) as caught:
            log.append("s", _drafts(_title("two")), expected=wrong)
        assert caught.value.trouble.details["head"] == "1"
    assert _titles(log, "s") == ["one"]


async def test_the_second_of_two_writers_fails_and_can_read_and_go_on(path: Path, log: EventLog) -> None:
    with closing(EventLog.open(path)) as other:
        await _write(log, "s", "one")
        await _write(other, "s", "two")
        with pytest.raises(LogConflict, match="changed by another process"):
            await log.append("s", _drafts(_title("no")), expected=1).done
        await _write(log, "s", "three")
        await _write(other, "s", "four")
    assert _titles(log, "s") == ["one", "two", "three", "four"]


async def test_many_processes_write_one_session_and_none_loses_a_fact(path: Path, log: EventLog) -> None:
    assert await asyncio.gather(*(_rival(path, name) for name in "abc")) == [0, 0, 0]
    titles = _titles(log, "s")
    assert [[title for title in titles if title[0] == name] for name in "abc"] == [
        [f"{name}{number}" for number in range(20)] for name in "abc"
    ]
    assert verify.verify_session(log, "s").ok


async def _rival(path: Path, name: str) -> int:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", _RIVAL, str(path), name)
    return await child.wait()


_RIVAL = """
import asyncio, sys
from pathlib import Path
from sylph.core import facts
from sylph.core.errors import LogConflict
from sylph.engine.log.store import EventLog
from sylph.engine.log.hash_chain import PendingFact

async def main(path, name):
    log = EventLog.open(Path(path))
    for number in range(20):
        draft = PendingFact(facts.SessionRenamed(title=f"{name}{number}"), 1, "", "user", 0)
        while True:
            try:
                await log.append("s", [draft], expected=log.head("s").seq).done
                break
            except LogConflict:
                pass
    log.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_batch_is_kept_whole_or_not_at_all(path: Path, log: EventLog) -> None:
    await _write(log, "s", "one")
    _edit(path, "insert into event select session, 3, v, turn, ts, type, actor, cause, data, salt, hash from event")
    with pytest.raises(LogConflict):
        await log.append("s", _drafts(_title("two"), _title("three")), expected=1).done
    assert [record.seq for record in log.read_records("s")] == [1, 3]


async def test_one_bad_job_does_not_take_its_neighbours_with_it(path: Path, log: EventLog) -> None:
    _edit(path, "insert into event values ('bad', 1, 1, '', 1, 'x', '', 0, x'', x'', x'')")
    taken, waiting = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        taken.set()
        waiting.wait()

    held = asyncio.create_task(log.execute_change(hold))
    await asyncio.to_thread(taken.wait)
    appended = [log.append(id, _drafts(_title(id)), expected=0) for id in ("a", "bad", "b")]
    waiting.set()
    a, bad, b = await asyncio.gather(*(one.done for one in appended), return_exceptions=True)
    assert (a, isinstance(bad, LogConflict), b) == (None, True, None)
    assert (_titles(log, "a"), _titles(log, "b"), await held) == (["a"], ["b"], None)


async def test_a_change_that_has_a_bug_is_told_and_the_writer_lives(log: EventLog) -> None:
    def bug(_: sqlite3.Connection) -> None:
        raise RuntimeError("oops")

    jobs = [log.execute_change(bug), _write(log, "a", "one"), _write(log, "b", "one")]
    told, *fine = await asyncio.gather(*jobs, return_exceptions=True)
    assert isinstance(told, StoreError)
    assert (fine, _titles(log, "a"), _titles(log, "b")) == ([None, None], ["one"], ["one"])


async def test_the_facts_of_many_sessions_keep_their_order(log: EventLog) -> None:
    async def fill(session: str) -> None:
        for number in range(20):
            log.append(session, _drafts(_title(str(number))), expected=number, durable=False)
            await asyncio.sleep(0)

    await asyncio.gather(*(fill(f"s{number}") for number in range(40)))
    log.close()
    with closing(EventLog.open(log.path)) as again:
        assert all(_titles(again, session) == [str(number) for number in range(20)] for session in again.session_ids())
        assert len(again.session_ids()) == 40


async def test_closing_keeps_what_still_waits(path: Path) -> None:
    log = EventLog.open(path)
    for number in range(600):
        log.append("s", _drafts(_title(str(number))), expected=number, durable=False)
    log.close()
    with closing(EventLog.open(path)) as again:
        assert again.head("s").seq == 600
    with pytest.raises(StoreError) as caught:
        log.append("s", _drafts(_title("late")), expected=600)
    assert caught.value.trouble.kind == "store_closed"


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not here: durability was NOT looked at")
@pytest.mark.parametrize(("durable", "flushed"), [(True, True), (False, False)])
def test_a_durable_fact_is_flushed_to_the_disk(tmp_path: Path, durable: bool, flushed: bool) -> None:
    code = _SYNC.format(path=str(tmp_path / "x.db"), durable=durable)
    trace = ["strace", "-f", "-e", "trace=fdatasync,fsync,getppid", sys.executable, "-c", code]
    lines = subprocess.run(trace, capture_output=True, text=True, check=True).stderr.splitlines()
    first, last = (number for number, line in enumerate(lines) if "getppid()" in line)
    assert any("sync(" in line for line in lines[first:last]) == flushed


_SYNC = """
import asyncio, os
from pathlib import Path
from sylph.core import facts
from sylph.engine.log.store import EventLog
from sylph.engine.log.hash_chain import PendingFact

async def main():
    log = EventLog.open(Path({path!r}))
    draft = PendingFact(facts.SessionRenamed(title="x"), 1, "", "user", 0)
    await log.append("s", [draft], expected=0, durable={durable}).done
    os.getppid()
    await log.append("s", [draft], expected=1, durable={durable}).done
    os.getppid()
    log.close()

asyncio.run(main())
"""


async def test_a_long_log_is_read_in_pages(log: EventLog) -> None:
    await _write(log, "s", *map(str, range(25)))
    pages, after = list[list[int]](), 0
    while page := log.read_events("s", after=after, limit=10):
        pages.append([event.seq for event in page])
        after = page[-1].seq
    assert pages == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]


async def test_a_blob_is_kept_with_the_fact_that_names_it(log: EventLog) -> None:
    appended = log.append("s", _drafts(_title("x")), expected=0, blobs=[("digest", b"whole")])
    await appended.done
    assert (log.load_blob("s", "digest"), log.load_blob("s", "other"), log.load_blob("t", "digest")) == (
        b"whole",
        None,
        None,
    )


async def test_a_snapshot_is_used_and_a_bad_or_old_or_impossible_one_is_ignored(log: EventLog) -> None:
    await _write(log, "s", "one", "two")
    older = fold.Fold("summary", 0, SessionState, SESSION_FOLD.step)
    state = SessionState(title="from the snapshot", seq=2)
    await fold.save_snapshot(log, "s", SESSION_FOLD, state, 2)
    assert fold.load_state(log, "s", SESSION_FOLD) == (state, 2, 2)
    assert fold.load_state(log, "s", older)[0].title == "two"
    await log.save_snapshot("s", SESSION_FOLD.name, SESSION_FOLD.version, 2, b"\xff garbage")
    assert fold.load_state(log, "s", SESSION_FOLD)[0].title == "two"
    await fold.save_snapshot(log, "s", SESSION_FOLD, state, 99)
    assert fold.load_state(log, "s", SESSION_FOLD)[0].title == "two"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("update event set type = 'dream.dreamt' where seq = 2", "unknown type"),
        ("update event set v = 2 where seq = 2", "newer version"),
        ("update event set data = x'ff00' where seq = 2", "damaged"),
        ("update event set data = '{\"title\": 5}' where seq = 2", "damaged"),
        ("update event set type = cast(x'ff' as text) where seq = 2", "unknown type"),
    ],
)
async def test_a_record_that_cannot_be_read_is_carried_and_costs_only_itself(
    path: Path, log: EventLog, sql: str, why: str
) -> None:
    await _write(log, "s", "one", "two", "three")
    _edit(path, sql)
    first, carried, last = log.read_events("s")
    assert isinstance(carried.body, UnreadableRecord)
    assert why in carried.body.why
    assert (first.body, last.body) == (_title("one"), _title("three"))
    assert not verify.verify_session(log, "s").ok
    await _write(log, "s", "four")
    assert _titles(log, "s") == ["one", "?", "three", "four"]


async def test_unknown_and_newer_records_are_no_damage_and_damaged_ones_are_named(path: Path, log: EventLog) -> None:
    await _write(log, "s", "one", "two", "three")
    _edit(path, "update event set type = 'dream.dreamt' where seq = 2")
    assert verify.find_damaged(log, "s") == []
    _edit(path, "update event set data = x'7b' where seq = 3")
    (trouble,) = verify.find_damaged(log, "s")
    assert (trouble.kind, trouble.message[:11]) == ("record_damaged", "Fact 3 of s")


async def test_a_missing_record_costs_only_itself(path: Path, log: EventLog) -> None:
    await _write(log, "s", "one", "two", "three")
    _edit(path, "delete from event where seq = 2")
    assert _titles(log, "s") == ["one", "three"]
    await _write(log, "s", "four")
    assert _titles(log, "s") == ["one", "three", "four"]
    assert [problem.kind for problem in verify.verify_session(log, "s").problems] == ["record_missing"]


async def test_half_characters_are_replaced_everywhere_they_may_stand(log: EventLog) -> None:
    bad = "\udcff"
    fact = facts.ToolFinished(call="c", ok=False, output=bad, trouble=ErrorReport(bad, bad, {bad: bad}, (bad,)))
    (event,) = log.append("s", _drafts(fact), expected=0).events
    assert event.body == facts.ToolFinished(
        call="c", ok=False, output="?", trouble=ErrorReport("?", "?", {"?": "?"}, ("?",))
    )


def _told(error: StoreError, kind: str) -> bool:
    trouble = error.trouble
    return trouble.kind == kind and bool(trouble.message and trouble.details["path"] and trouble.next)


async def test_a_full_store_says_so_and_keeps_what_it_acknowledged(path: Path) -> None:
    with closing(EventLog.open(path)) as log:
        await _write(log, "s", "kept")
        await log.execute_change(lambda db: db.execute("pragma max_page_count = 1"))
        with pytest.raises(StoreError) as caught:
            await _write(log, "s", "x" * 100_000)
        assert _told(caught.value, "store_full")
        assert _titles(log, "s") == ["kept"]
        await log.execute_change(lambda db: db.execute("pragma max_page_count = 1000000"))
        await _write(log, "s", "kept too")
    with closing(EventLog.open(path)) as log:
        assert _titles(log, "s") == ["kept", "kept too"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount here: a really full disk was NOT tried")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _protect(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


async def test_a_really_full_disk_keeps_what_it_acknowledged(small_disk: Path) -> None:
    kept = 0
    with closing(EventLog.open(small_disk / "sylph.db")) as log, pytest.raises(StoreError) as caught:
        while True:
            await _write(log, "s", "x" * 20_000, durable=True)
            kept += 1
    assert _told(caught.value, "store_full")
    with closing(EventLog.open(small_disk / "sylph.db")) as log:
        assert (log.head("s").seq, verify.verify_session(log, "s").ok) == (kept, True)
        assert kept > 0


async def test_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    path = small_disk / "sylph.db"
    with closing(EventLog.open(path)) as log:
        await _write(log, "s", "kept")
    _protect(small_disk)
    with closing(EventLog.open(path)) as log:
        assert (log.read_only, _titles(log, "s")) == (True, ["kept"])
        with pytest.raises(StoreError) as caught:
            await _write(log, "s", "no")
        assert _told(caught.value, "store_read_only")


async def test_a_read_only_disk_with_unmerged_facts_is_not_shown_half(small_disk: Path) -> None:
    path = small_disk / "sylph.db"
    log = EventLog.open(path)
    await _write(log, "s", "kept")
    copy = small_disk / "copy"
    copy.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", copy / f"sylph.db{suffix}")
    log.close()
    _protect(small_disk)
    with pytest.raises(StoreError) as caught:
        EventLog.open(copy / "sylph.db")
    assert _told(caught.value, "store_unopened")


@pytest.fixture
def nobody() -> Iterator[Callable[[], None]]:
    """Lets a test go on as somebody who may not write everywhere, if it runs as root."""
    yield lambda: os.seteuid(65534) if os.getuid() == 0 else None
    os.seteuid(os.getuid())


async def test_a_read_only_file_can_be_read(nobody: Callable[[], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sylph.db"
        with closing(EventLog.open(path)) as log:
            await _write(log, "s", "kept")
        path.chmod(0o444)
        path.parent.chmod(0o555)
        nobody()
        with closing(EventLog.open(path)) as log:
            assert (log.read_only, _titles(log, "s")) == (True, ["kept"])
        os.seteuid(os.getuid())


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(StoreError) as caught:
        EventLog.open(tmp_path / "data" / "sylph.db")
    assert _told(caught.value, "store_unopened")


def test_a_store_that_is_a_folder_is_a_clear_error(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreError) as caught:
        EventLog.open(path)
    assert _told(caught.value, "store_unopened")


async def test_a_busy_store_is_a_clear_error_and_works_again_after(
    path: Path, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _write(log, "s", "one")
    await log.execute_change(lambda db: db.execute("pragma busy_timeout = 50"))
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("begin immediate")
        with pytest.raises(StoreError) as caught:
            await _write(log, "s", "two")
        assert _told(caught.value, "store_busy")
        db.execute("rollback")
    await _write(log, "s", "two")
    assert _titles(log, "s") == ["one", "two"]


def test_a_store_held_by_another_program_is_busy_not_read_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    EventLog.open(path).close()
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma locking_mode = exclusive")
        db.execute("begin exclusive")
        with pytest.raises(StoreError) as caught:
            EventLog.open(path)
    assert _told(caught.value, "store_busy")


def test_something_else_in_the_place_of_the_store_is_a_clear_error(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"This is not a database. " * 100)
    with pytest.raises(StoreError) as caught:
        EventLog.open(path)
    assert _told(caught.value, "store_damaged")
    assert path.read_bytes().startswith(b"This is not")


def test_a_store_of_a_newer_version_is_left_alone(path: Path) -> None:
    EventLog.open(path).close()
    _edit(path, "pragma user_version = 2")
    with pytest.raises(StoreError) as caught:
        EventLog.open(path)
    assert _told(caught.value, "store_newer")


async def test_a_damaged_page_is_found_and_told(path: Path) -> None:
    with closing(EventLog.open(path)) as log:
        await _write(log, "s", *("x" * 3_000 for _ in range(50)))
        assert log.check_integrity() == []
    _scratch(path)
    async with Runtime(EventLog.open(path), RuntimeParts(gateway=ModelGateway({}))) as engine:
        assert {trouble.kind for trouble in await engine.check_store()} == {"store_damaged"}
    with closing(EventLog.open(path)) as log:
        assert [trouble.kind for trouble in log.check_integrity()][:1] == ["store_damaged"]
        with pytest.raises(StoreError) as caught:
            log.read_events("s")
    assert _told(caught.value, "store_damaged")


def _scratch(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[4096 * 8 : 4096 * 20] = b"\xab" * 4096 * 12
    path.write_bytes(raw)


async def test_records_that_are_here_already_are_not_installed_again(log: EventLog) -> None:
    await _write(log, "s", "one", "two")
    with pytest.raises(LogConflict):
        await log.install_records(log.read_records("s"), [])
    assert _titles(log, "s") == ["one", "two"]


async def test_whoever_stops_waiting_changes_nothing(log: EventLog) -> None:
    appended = log.append("s", _drafts(_title("one")), expected=0)
    appended.done.cancel()
    await _write(log, "t", "after")
    assert (_titles(log, "s"), log.append("s", _drafts(_title("two")), expected=1).events[0].seq) == (["one"], 2)


def test_a_store_that_became_read_only_says_so(path: Path) -> None:
    assert _told(
        schema.explain_error(sqlite3.OperationalError("attempt to write a readonly database"), path), "store_read_only"
    )


def test_other_complaints_of_the_store_are_told_as_they_are(path: Path) -> None:
    error = schema.explain_error(sqlite3.OperationalError("disk I/O error"), path)
    assert _told(error, "store_failed")
    assert "disk I/O error" in str(error)
    assert msgspec.json.encode(error.trouble)
