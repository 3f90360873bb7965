"""The log: durable appends, and opening a long session."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

from bench.measure import Row, home
from sylph.core import facts
from sylph.core.clock import SystemClock
from sylph.core.events import Fact
from sylph.engine.log.event_bus import EventBus
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.lease import SessionLease
from sylph.engine.log.store import EventLog
from sylph.engine.turn.session_log import SessionServices
from sylph.engine.turn.turn_context import TurnContext

FACT = facts.InputReceived(id="i1", text="please look at the tests and tell me why they fail " * 4)
EVENTS = 100_000


def rows() -> list[Row]:
    return [*_appends(), *asyncio.run(_opening())]


def _appends() -> list[Row]:
    found: list[Row] = []
    for sessions, each in ((1, 1000), (200, 25)):
        with home() as folder:
            ours = asyncio.run(_append(folder / "a.db", sessions, each))
            floor = _raw(folder / "b.db", sessions * each if sessions == 1 else 1000)
        name = f"durable appends, {sessions} session{'s' * (sessions > 1)}"
        note = "floor: one commit per row, one thread" if sessions == 1 else ""
        found.append(Row(name=name, figure=ours, unit="/s", floor=floor, more=True, note=note))
    return found


async def _append(path: Path, sessions: int, each: int) -> float:
    log = EventLog.open(path)

    async def one(session: str) -> None:
        for seq in range(each):
            await log.append(session, [PendingFact(FACT, 0, "", "user", 0)], expected=seq, durable=True).done

    began = time.perf_counter()
    await asyncio.gather(*(one(f"s{number}") for number in range(sessions)))
    took = time.perf_counter() - began
    log.close()
    return sessions * each / took


def _raw(path: Path, count: int) -> float:
    """SQLite in its own thread of execution, with nothing round it: what the disk and SQLite allow."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = full")
    db.execute("create table event (session text, seq integer, data blob, primary key (session, seq)) without rowid")

    def write() -> None:
        for seq in range(count):
            db.execute("insert into event values ('s', ?, ?)", (seq, b"x" * 300))

    began = time.perf_counter()
    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    took = time.perf_counter() - began
    db.close()
    return count / took


def _turn(number: int) -> list[PendingFact]:
    turn = f"t{number}"
    new: list[Fact] = [
        facts.InputReceived(id=f"i{number}", text="please do something useful " * 5),
        facts.TurnStarted(input=f"i{number}"),
    ]
    for step in range(3):
        call = f"{turn}_c{step}"
        new += [
            facts.ModelRequested(model="m/m", round=step),
            facts.ModelResponded(model="m/m", text="words " * 30, finish="calls", calls=1),
            facts.ToolCalled(call=call, name="read", arguments='{"path":"a.txt"}'),
            facts.ToolDecided(call=call, decision="allow", reason="r", by="mode", effect="read", risk="safe"),
            facts.ToolStarted(call=call, effect="read", recourse="pure"),
            facts.ToolFinished(call=call, ok=True, output="line\n" * 50),
        ]
    new.append(facts.TurnEnded(outcome="finished"))
    return [PendingFact(fact, number, turn, "sylph", 0) for fact in new]


async def fill(log: EventLog, session: str = "s") -> None:
    """One session of 100,000 facts."""
    created = facts.SessionCreated(workspace="/", model="m/m", mode="ask")
    await log.append(session, [PendingFact(created, 0, "", "user", 0)], expected=0).done
    seq, number = 1, 0
    while seq < EVENTS:
        number += 1
        drafts = _turn(number)
        done = log.append(session, drafts, expected=seq, durable=False).done
        seq += len(drafts)
        if number % 50 == 0:
            await done


async def _opening() -> list[Row]:
    with home() as folder:
        log = EventLog.open(folder / "a.db")
        clock = SystemClock()
        bus = EventBus(lambda session, after, limit: log.read_events(session, after=after, limit=limit))
        shelf = SessionServices(log=log, bus=bus, clock=clock, take_lease=lambda id: SessionLease.acquire(folder, id))
        await fill(log)
        first, book = _open(shelf)
        await book.save_snapshots()
        again, _ = _open(shelf)
        floor = _read_all(folder / "a.db")
        log.close()
    return [
        Row(
            name="open 100,000 events, first time",
            figure=first,
            unit="s",
            floor=floor,
            note="floor: SQLite reads the rows",
        ),
        Row(
            name="open 100,000 events, again",
            figure=again,
            unit="s",
            floor=floor,
            bar=0.2,
            note="never compacted: the worst case",
        ),
    ]


def _open(shelf: SessionServices) -> tuple[float, TurnContext]:
    began = time.perf_counter()
    book = TurnContext("s", shelf)
    return time.perf_counter() - began, book


def _read_all(path: Path) -> float:
    db = sqlite3.connect(path)
    began = time.perf_counter()
    for _ in db.execute("select * from event where session = 's' order by seq"):
        pass
    took = time.perf_counter() - began
    db.close()
    return took
