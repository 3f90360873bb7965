"""The cards of all sessions, as they grow."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sylph.core import commands
from sylph.engine import fold
from sylph.engine.fold import Fold
from sylph.engine.log import Log
from sylph.engine.summary import Summary
from sylph.testing import ScriptedProvider, begin, play, runtime, say


async def test_only_what_has_grown_is_read_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []
    load_all = fold.load_all

    def counted(log: Log, kind: Fold[Summary], only: Sequence[str] | None = None) -> dict[str, Summary]:
        read.append(sorted(only or ()))
        return load_all(log, kind, only)

    monkeypatch.setattr(fold, "load_all", counted)
    async with runtime(home, ScriptedProvider([say("Hi.")])) as engine:
        one, two = await begin(engine, home), await begin(engine, home)
        assert {card.id for card in await engine.cards.all()} == {one, two}
        await engine.send(two, commands.Pin())
        cards = {card.id: card for card in await engine.cards.all()}
        await engine.cards.all()
    assert (cards[one].pinned, cards[two].pinned) == (False, True)
    assert read == [sorted([one, two]), [two]]


async def test_a_session_that_is_gone_has_no_card(home: Path) -> None:
    async with runtime(home, ScriptedProvider([])) as engine:
        session = await begin(engine, home)
        assert await engine.cards.all()
        await engine.purge(session)
        assert await engine.cards.all() == []


async def test_it_is_known_where_a_session_stood(home: Path) -> None:
    async with runtime(home, ScriptedProvider([say("Hi."), say("Again.")])) as engine:
        session = await begin(engine, home)
        await play(engine, session, "hello")
        (before,) = await engine.cards.all()
        await engine.send(session, commands.Archive())
        (aside,) = await engine.cards.all()
        assert aside.updated == before.updated, "to put it aside is no news of it"
        assert aside.archived
        await engine.send(session, commands.Rename(title="later"))
        (renamed,) = await engine.cards.all()
        assert (renamed.title, renamed.updated) == ("later", before.updated), "nor is another title"
        await play(engine, session, "more")
        (after,) = await engine.cards.all()
        assert after.updated > before.updated
        assert engine.cards.stood(after, before.updated) == before.updated
        assert engine.cards.stood(after, before.created - 1) == 0


async def test_what_was_seen_is_no_longer_unread(home: Path) -> None:
    async with runtime(home, ScriptedProvider([say("Hi.")])) as engine:
        session = await begin(engine, home)
        assert [card.unread for card in await engine.cards.all()] == [False]
        await play(engine, session, "hello")
        assert [card.unread for card in await engine.cards.all()] == [True]
        await engine.send(session, commands.See(upto=10_000))
        seen = engine.log.head(session).seq
        await engine.send(session, commands.See(upto=3))
        assert [card.unread for card in await engine.cards.all()] == [False]
        assert engine.log.head(session).seq == seen, "what was seen before says nothing new"
