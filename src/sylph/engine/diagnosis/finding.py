"""What a diagnosis is made from, and what it comes to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.errors import Trouble
from sylph.core.events import Event
from sylph.core.run import Job
from sylph.engine.replay import Replayed

State = Literal["ok", "note", "warn", "fail"]
Journal = Literal["running", "ended", "lost"]


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `evidence` are the numbers of the facts that show it."""

    check: str
    state: State
    message: str
    evidence: tuple[int, ...] = ()
    next: tuple[str, ...] = ()


class Live(Struct, frozen=True, kw_only=True):
    """What no log can know of itself."""

    problems: tuple[Trouble, ...] = ()
    """What does not fit the hash chain."""
    pid: int = 0
    """The process that works on the session; 0 if none does, -1 if it cannot be told which."""
    left: bool = False
    """Whether a lock is there that nobody holds."""
    journals: Mapping[str, Journal] = field(default_factory=dict[str, Journal])
    """By call: what its journal says of a command."""
    jobs: Sequence[Job] = ()
    snapshots: Mapping[str, tuple[int, bytes]] = field(default_factory=dict[str, tuple[int, bytes]])
    """By the name of a fold: where its snapshot stands, and the snapshot."""
    replayed: Replayed | Trouble | None = None
    """What running the session again came to, or why that is not possible; None if it was not tried."""


class Case(Struct, frozen=True):
    """A session on the table."""

    session: str
    events: Sequence[Event]
    live: Live

    @property
    def show(self) -> str:
        return f"sylph session show {self.session}"

    @property
    def facts(self) -> str:
        return f"sylph session show {self.session} --events"

    @property
    def resume(self) -> str:
        return f"sylph resume {self.session}"

    @property
    def last_turn(self) -> str:
        return next((event.turn for event in reversed(self.events) if isinstance(event.body, facts.TurnStarted)), "")

    def task(self, turn: str) -> str:
        return f"sylph task show {self.session}.{turn.removeprefix('t')}"


Look = Callable[[Case], Iterable[Finding]]


def places(events: Iterable[Event]) -> tuple[int, ...]:
    return tuple(event.seq for event in events)
