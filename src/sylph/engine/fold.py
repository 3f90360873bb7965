"""A fold: state that grows with the log, kept as a snapshot so that opening a session is not a re-read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from sylph.core.events import Event
from sylph.engine.log import Log

S = TypeVar("S", bound=msgspec.Struct)

PAGE = 2000


@dataclass(frozen=True, slots=True)
class Fold(Generic[S]):
    """`step` changes the state by one event. A new `version` makes older snapshots worthless, and they are ignored."""

    name: str
    version: int
    state: type[S]
    step: Callable[[S, Event], None]


def load(log: Log, session: str, fold: Fold[S]) -> tuple[S, int, int]:
    """The state at the end of the log, the seq it stands at, and the seq of the snapshot it began from."""
    state, start = _snapshot(log, session, fold)
    seq = start
    while page := log.read(session, after=seq, limit=PAGE):
        for event in page:
            fold.step(state, event)
        seq = page[-1].seq
    return state, seq, start


async def save(log: Log, session: str, fold: Fold[S], state: S, seq: int) -> None:
    await log.save(session, fold.name, fold.version, seq, msgspec.msgpack.encode(state))


def _snapshot(log: Log, session: str, fold: Fold[S]) -> tuple[S, int]:
    kept = log.snapshot(session, fold.name, fold.version)
    if kept is None or kept[0] > log.head(session).seq:
        return fold.state(), 0
    try:
        return msgspec.msgpack.decode(kept[1], type=fold.state), kept[0]
    except msgspec.DecodeError:
        # A snapshot is only a shortcut: a bad one costs time, never truth.
        return fold.state(), 0
