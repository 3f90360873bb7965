"""A log that nobody has folded for long: it is read once, gently, and near from then on."""

import asyncio
from pathlib import Path

import pytest

from sylph.core import facts
from sylph.core.errors import StoreError
from sylph.engine.folds import fold
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.folds.snapshot_warmer import STALE_AFTER_FACTS, SnapshotWarmer
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog
from sylph.testing import ScriptedProvider, begin_session, scripted_runtime

LONG = 3 * fold.PAGE


async def grow(log: EventLog, session: str, facts_: int) -> None:
    said = [
        PendingFact(facts.SessionRenamed(title=f"title {number}"), number, "", "user", 0) for number in range(facts_)
    ]
    await log.append(session, said, expected=log.head(session).seq, durable=False).done


def kept(log: EventLog, session: str) -> int:
    found = log.load_snapshot(session, SESSION_FOLD.name, SESSION_FOLD.version)
    return found[0] if found else 0


async def test_it_is_read_once_however_many_wait(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    walk = EventLog.iter_events

    def counted(self: EventLog, session: str, *, after: int = 0, limit: int = 1000) -> object:
        read.append(after)
        return walk(self, session, after=after, limit=limit)

    async with scripted_runtime(home, ScriptedProvider([])) as engine:
        session = await begin_session(engine, home)
        await grow(engine.log, session, LONG)
        monkeypatch.setattr(EventLog, "iter_events", counted)
        found = await asyncio.gather(
            engine.find_session(session), engine.cards.load_items(), engine.list_sessions(), engine.find_session("last")
        )
        assert found[0].title == found[3].title == f"title {LONG - 1}"
        assert read.count(0) == 1
        assert kept(engine.log, session) == engine.log.head(session).seq


async def test_others_have_their_turn_meanwhile(home: Path) -> None:
    async with scripted_runtime(home, ScriptedProvider([])) as engine:
        session = await begin_session(engine, home)
        await grow(engine.log, session, LONG)
        warming = asyncio.create_task(SnapshotWarmer(engine.log).warm_session(session))
        turns = 0
        while not warming.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= LONG // fold.PAGE


async def test_who_leaves_takes_nothing_from_the_others(home: Path) -> None:
    async with scripted_runtime(home, ScriptedProvider([])) as engine:
        session = await begin_session(engine, home)
        await grow(engine.log, session, LONG)
        warmer = SnapshotWarmer(engine.log)
        hasty, patient = (
            asyncio.create_task(warmer.warm_session(session)),
            asyncio.create_task(warmer.warm_session(session)),
        )
        await asyncio.sleep(0)
        hasty.cancel()
        await patient
        assert kept(engine.log, session) == engine.log.head(session).seq


async def test_what_is_near_is_left_alone(home: Path) -> None:
    async with scripted_runtime(home, ScriptedProvider([])) as engine:
        session = await begin_session(engine, home)
        await grow(engine.log, session, STALE_AFTER_FACTS - 1)
        await SnapshotWarmer(engine.log).warm_all()
        assert kept(engine.log, session) == 0
        await grow(engine.log, session, 1)
        await SnapshotWarmer(engine.log).warm_all()
        assert kept(engine.log, session) == STALE_AFTER_FACTS + 1


async def test_a_full_disk_costs_time_and_nothing_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> None:
        raise StoreError("The disk is full.", kind="store_full")

    async with scripted_runtime(home, ScriptedProvider([])) as engine:
        session = await begin_session(engine, home)
        await grow(engine.log, session, LONG)
        monkeypatch.setattr(fold, "save_snapshot", full)
        assert (await engine.find_session(session)).title == f"title {LONG - 1}"
        assert [card.title for card in await engine.cards.load_items()] == [f"title {LONG - 1}"]
        assert kept(engine.log, session) == 0
