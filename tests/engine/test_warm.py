"""A log that nobody has folded for long: it is read once, gently, and near from then on."""

import asyncio
from pathlib import Path

import pytest

from sylph.core import facts
from sylph.core.errors import StoreError
from sylph.engine import fold
from sylph.engine.log import Log
from sylph.engine.seal import Draft
from sylph.engine.summary import SUMMARY
from sylph.engine.warm import FAR, Warmer
from sylph.testing import ScriptedProvider, begin, runtime

LONG = 3 * fold.PAGE


async def grow(log: Log, session: str, facts_: int) -> None:
    said = [Draft(facts.SessionRenamed(title=f"title {number}"), number, "", "user", 0) for number in range(facts_)]
    await log.append(session, said, expected=log.head(session).seq, durable=False).done


def kept(log: Log, session: str) -> int:
    found = log.snapshot(session, SUMMARY.name, SUMMARY.version)
    return found[0] if found else 0


async def test_it_is_read_once_however_many_wait(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    walk = Log.walk

    def counted(self: Log, session: str, *, after: int = 0, limit: int = 1000) -> object:
        read.append(after)
        return walk(self, session, after=after, limit=limit)

    async with runtime(home, ScriptedProvider([])) as engine:
        session = await begin(engine, home)
        await grow(engine.log, session, LONG)
        monkeypatch.setattr(Log, "walk", counted)
        found = await asyncio.gather(engine.find(session), engine.cards.all(), engine.sessions(), engine.find("last"))
        assert found[0].title == found[3].title == f"title {LONG - 1}"
        assert read.count(0) == 1
        assert kept(engine.log, session) == engine.log.head(session).seq


async def test_others_have_their_turn_meanwhile(home: Path) -> None:
    async with runtime(home, ScriptedProvider([])) as engine:
        session = await begin(engine, home)
        await grow(engine.log, session, LONG)
        warming = asyncio.create_task(Warmer(engine.log).one(session))
        turns = 0
        while not warming.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= LONG // fold.PAGE


async def test_who_leaves_takes_nothing_from_the_others(home: Path) -> None:
    async with runtime(home, ScriptedProvider([])) as engine:
        session = await begin(engine, home)
        await grow(engine.log, session, LONG)
        warmer = Warmer(engine.log)
        hasty, patient = asyncio.create_task(warmer.one(session)), asyncio.create_task(warmer.one(session))
        await asyncio.sleep(0)
        hasty.cancel()
        await patient
        assert kept(engine.log, session) == engine.log.head(session).seq


async def test_what_is_near_is_left_alone(home: Path) -> None:
    async with runtime(home, ScriptedProvider([])) as engine:
        session = await begin(engine, home)
        await grow(engine.log, session, FAR - 1)
        await Warmer(engine.log).all()
        assert kept(engine.log, session) == 0
        await grow(engine.log, session, 1)
        await Warmer(engine.log).all()
        assert kept(engine.log, session) == FAR + 1


async def test_a_full_disk_costs_time_and_nothing_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> None:
        raise StoreError("The disk is full.", kind="store_full")

    async with runtime(home, ScriptedProvider([])) as engine:
        session = await begin(engine, home)
        await grow(engine.log, session, LONG)
        monkeypatch.setattr(fold, "save", full)
        assert (await engine.find(session)).title == f"title {LONG - 1}"
        assert [card.title for card in await engine.cards.all()] == [f"title {LONG - 1}"]
        assert kept(engine.log, session) == 0
