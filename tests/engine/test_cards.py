"""The cards of all sessions, as they grow."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sylph.core import commands
from sylph.engine.folds import fold
from sylph.engine.folds.fold import Fold
from sylph.engine.folds.session_state import SessionState
from sylph.engine.log.store import EventLog
from sylph.testing import ScriptedProvider, begin_session, play_turn, say, scripted_runtime


async def test_only_what_has_grown_is_read_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []
    load_all = fold.load_all

    def counted(log: EventLog, kind: Fold[SessionState], only: Sequence[str] | None = None) -> dict[str, SessionState]:
        read.append(sorted(only or ()))
        return load_all(log, kind, only)

    monkeypatch.setattr(fold, "load_all", counted)
    async with scripted_runtime(home, ScriptedProvider([say("Hi.")])) as engine:
        one, two = await begin_session(engine, home), await begin_session(engine, home)
        assert {card.id for card in await engine.cards.load_items()} == {one, two}
        await engine.send(two, commands.Pin())
        cards = {card.id: card for card in await engine.cards.load_items()}
        await engine.cards.load_items()
    assert (cards[one].pinned, cards[two].pinned) == (False, True)
    assert read == [sorted([one, two]), [two]]


async def test_a_session_that_is_gone_has_no_card(home: Path) -> None:
    async with scripted_runtime(home, ScriptedProvider([])) as engine:
        session = await begin_session(engine, home)
        assert await engine.cards.load_items()
        await engine.purge_session(session)
        assert await engine.cards.load_items() == []


async def test_it_is_known_where_a_session_stood(home: Path) -> None:
    async with scripted_runtime(home, ScriptedProvider([say("Hi."), say("Again.")])) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "hello")
        (before,) = await engine.cards.load_items()
        await engine.send(session, commands.Archive())
        (aside,) = await engine.cards.load_items()
        assert aside.updated == before.updated, "to put it aside is no news of it"
        assert aside.archived
        await engine.send(session, commands.Rename(title="later"))
        (renamed,) = await engine.cards.load_items()
        assert (renamed.title, renamed.updated) == ("later", before.updated), "nor is another title"
        await play_turn(engine, session, "more")
        (after,) = await engine.cards.load_items()
        assert after.updated > before.updated
        assert engine.cards.last_update_at(after, before.updated) == before.updated
        assert engine.cards.last_update_at(after, before.created - 1) == 0


async def test_what_was_seen_is_no_longer_unread(home: Path) -> None:
    async with scripted_runtime(home, ScriptedProvider([say("Hi.")])) as engine:
        session = await begin_session(engine, home)
        assert [card.unread for card in await engine.cards.load_items()] == [False]
        await play_turn(engine, session, "hello")
        assert [card.unread for card in await engine.cards.load_items()] == [True]
        await engine.send(session, commands.MarkSeen(upto=10_000))
        seen = engine.log.head(session).seq
        await engine.send(session, commands.MarkSeen(upto=3))
        assert [card.unread for card in await engine.cards.load_items()] == [False]
        assert engine.log.head(session).seq == seen, "what was seen before says nothing new"
