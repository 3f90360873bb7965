"""Whatever is done to a log by hand is found, and a checker needs nothing but the standard library."""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.core import facts
from sylph.core.events import LogHead
from sylph.engine.log import verify
from sylph.engine.log.hash_chain import LogRecord, PendingFact, chain_hash, output_digest, salted_digest, seal_record
from sylph.engine.log.store import EventLog
from sylph.testing import begin_session, scripted_runtime

WHOLE = b"all of a long output"
COLUMNS = ("session", "seq", "v", "turn", "ts", "type", "actor", "cause", "data", "salt", "hash")
REST = ", ".join(COLUMNS[2:])
text = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)


async def _recorded(path: Path) -> None:
    """A store with one session of six facts and one whole output."""
    with closing(EventLog.open(path)) as log:
        new = [facts.SessionRenamed(title=f"title {number}") for number in range(5)]
        done = facts.ToolFinished(call="t1_c1", ok=True, output="all", whole=output_digest(WHOLE))
        drafts = [PendingFact(fact, 1_700_000_000_000, "t1", "user", 0) for fact in (*new, done)]
        await log.append("s", drafts, expected=0, blobs=[(output_digest(WHOLE), WHOLE)]).done


def _after(tamper: Callable[[sqlite3.Connection], object]) -> list[str]:
    """What `verify` says of the recorded session after somebody was at the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sylph.db"
        asyncio.run(_recorded(path))
        with closing(sqlite3.connect(path)) as db:
            tamper(db)
            db.commit()
        with closing(EventLog.open(path)) as log:
            return [problem.kind for id in log.all_session_ids() for problem in verify.verify_session(log, id).problems]


def test_an_untouched_log_verifies() -> None:
    assert _after(lambda _: None) == []


@given(st.sampled_from(COLUMNS), st.integers(1, 6), st.integers(0, 100), st.integers(1, 255))
def test_a_changed_byte_is_found_in_any_column_of_any_row(column: str, seq: int, place: int, change: int) -> None:
    def tamper(db: sqlite3.Connection) -> None:
        (old,) = db.execute(f"select {column} from event where seq = ?", (seq,)).fetchone()
        db.execute(f"update event set {column} = ? where seq = ?", (_changed(old, place, change), seq))

    assert _after(tamper)


def _changed(old: object, place: int, change: int) -> object:
    match old:
        case int():
            return old + change * 1_000
        case str():
            raw = bytearray(old.encode() or b"\0")
            raw[place % len(raw)] ^= change
            return bytes(raw)
        case bytes():
            raw = bytearray(old)
            raw[place % len(raw)] ^= change
            return bytes(raw)
        case _:
            raise AssertionError(old)


@pytest.mark.parametrize(
    "sql",
    [
        "delete from event where seq = 3",
        "delete from event where seq = 1",
        "delete from event where seq > 4",
        "delete from event",
        "delete from session",
        "update session set seq = 5",
        "update session set hash = x'00'",
        "update session set id = 't'",
        "update event set seq = case seq when 2 then 30 else 2 end where seq in (2, 3)",
        f"insert into event select session, 7, {REST} from event where seq = 6",
        f"insert into event select session, 0, {REST} from event where seq = 1",
        "update event set data = (select data from event where seq = 2) where seq = 3",
        "update event set data = replace(data, 'title 1', 'title x')",
        "update event set actor = cast(x'ff' as text) where seq = 2",
        "update event set v = 'x' where seq = 2",
        "update blob set bytes = x'00'",
        "delete from blob",
    ],
)
def test_removing_adding_swapping_and_cutting_off_are_found(sql: str) -> None:
    assert _after(lambda db: db.execute(sql))


def test_text_in_the_place_of_the_same_bytes_changes_nothing() -> None:
    assert _after(lambda db: db.execute("update event set data = cast(data as text)")) == []


async def test_the_runtime_looks_at_every_session_also_at_those_not_listed(tmp_path: Path) -> None:
    async with scripted_runtime(tmp_path, []) as engine:
        sessions = sorted([await begin_session(engine, tmp_path), await begin_session(engine, tmp_path)])
        await engine.log.execute_change(lambda db: db.execute("delete from session where id = ?", sessions[:1]))
        assert [(one.session, one.ok) for one in await engine.verify_sessions()] == [
            (sessions[0], False),
            (sessions[1], True),
        ]
        assert (await engine.verify_sessions(sessions[1]))[0].events == 1
        assert await engine.check_store() == []


@given(text, text, text, text, numbers, numbers, st.binary(max_size=50), st.binary(max_size=8))
def test_the_standard_library_computes_the_same_chain(
    session: str, turn: str, type_: str, actor: str, ts: int, cause: int, data: bytes, salt: bytes
) -> None:
    record = LogRecord(session, 7, 1, turn, ts, type_, actor, cause, data, salt, b"")
    head = json.dumps([1, session, 7, turn, ts, type_, actor, cause], separators=(",", ":"), ensure_ascii=False)
    inner = hashlib.blake2b(salt + data, digest_size=32).digest()
    outer = hashlib.blake2b(b"before" + head.encode() + inner, digest_size=32).digest()
    assert chain_hash(b"before", record, salted_digest(salt, data)) == outer


def test_two_equal_facts_have_different_commitments() -> None:
    draft = PendingFact(facts.SessionRenamed(title="secret"), 1, "", "user", 0)
    one, two = (seal_record("s", LogHead(), draft) for _ in range(2))
    assert (one.data, salted_digest(one.salt, one.data) == salted_digest(two.salt, two.data)) == (two.data, False)
