"""A fold: state that grows with the log, kept as a snapshot so that opening a session is not a re-read."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from sylph.core.events import Event
from sylph.engine.log.store import EventLog

S = TypeVar("S", bound=msgspec.Struct)

PAGE = 1000


class Fold(Struct, Generic[S], frozen=True):
    """`step` changes the state by one event. A new `version` makes older snapshots worthless, and they are ignored."""

    name: str
    version: int
    state: type[S]
    step: Callable[[S, Event], None]


def load_state(log: EventLog, session: str, fold: Fold[S]) -> tuple[S, int, int]:
    """The state at the end of the log, the seq it stands at, and the seq of the snapshot it began from."""
    state, start = _restore_snapshot(fold, log.load_snapshot(session, fold.name, fold.version), log.head(session).seq)
    return state, _catch_up(log, session, fold, state, start), start


def load_all(log: EventLog, fold: Fold[S], only: Sequence[str] | None = None) -> dict[str, S]:
    """The state of every session, or only some: one query, and only what grew since its snapshot is read."""
    found: dict[str, S] = {}
    for session, head, seq, kept in log.load_snapshots(fold.name, fold.version, only):
        state, start = _restore_snapshot(fold, (seq, kept) if kept is not None else None, head)
        if start < head:
            _catch_up(log, session, fold, state, start)
        found[session] = state
    return found


async def load_in_pages(log: EventLog, session: str, fold: Fold[S]) -> tuple[S, int]:
    """As `load`, a page at a time, with room for others in between."""
    state, seq = _restore_snapshot(fold, log.load_snapshot(session, fold.name, fold.version), log.head(session).seq)
    while (reached := _apply_page(log, session, fold, state, seq)) > seq:
        seq = reached
        await asyncio.sleep(0)
    return state, seq


async def save_snapshot(log: EventLog, session: str, fold: Fold[S], state: S, seq: int) -> None:
    await log.save_snapshot(session, fold.name, fold.version, seq, msgspec.msgpack.encode(state))


def _restore_snapshot(fold: Fold[S], kept: tuple[int, bytes] | None, head: int) -> tuple[S, int]:
    if kept is None or kept[0] > head:
        return fold.state(), 0
    try:
        return msgspec.msgpack.decode(kept[1], type=fold.state), kept[0]
    except msgspec.DecodeError:
        # A snapshot is only a shortcut: a bad one costs time, never truth.
        return fold.state(), 0


def _catch_up(log: EventLog, session: str, fold: Fold[S], state: S, seq: int) -> int:
    while (reached := _apply_page(log, session, fold, state, seq)) > seq:
        seq = reached
    return seq


def _apply_page(log: EventLog, session: str, fold: Fold[S], state: S, seq: int) -> int:
    for event in log.iter_events(session, after=seq, limit=PAGE):
        fold.step(state, event)
        seq = event.seq
    return seq
