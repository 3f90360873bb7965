"""What a diagnosis is made from, and what it comes to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.command_run import BackgroundJob
from sylph.core.errors import ErrorReport
from sylph.core.events import Event
from sylph.replay.player import ReplayResult

FindingState = Literal["ok", "note", "warn", "fail"]
JournalState = Literal["running", "ended", "lost"]


class DiagnosisFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `evidence` are the numbers of the facts that show it."""

    check: str
    state: FindingState
    message: str
    evidence: tuple[int, ...] = ()
    next: tuple[str, ...] = ()


class LiveSessionInfo(Struct, frozen=True, kw_only=True):
    """What no log can know of itself."""

    problems: tuple[ErrorReport, ...] = ()
    """What does not fit the hash chain."""
    pid: int = 0
    """The process that works on the session; 0 if none does, -1 if it cannot be told which."""
    stale_lock: bool = False
    """Whether a lock is there that nobody holds."""
    journals: Mapping[str, JournalState] = field(default_factory=dict[str, JournalState])
    """By call: what its journal says of a command."""
    jobs: Sequence[BackgroundJob] = ()
    snapshots: Mapping[str, tuple[int, bytes]] = field(default_factory=dict[str, tuple[int, bytes]])
    """By the name of a fold: where its snapshot stands, and the snapshot."""
    replayed: ReplayResult | ErrorReport | None = None
    """What running the session again came to, or why that is not possible; None if it was not tried."""


class DiagnosisCase(Struct, frozen=True):
    """A session on the table."""

    session: str
    events: Sequence[Event]
    live: LiveSessionInfo

    @property
    def show_command(self) -> str:
        return f"sylph session show {self.session}"

    @property
    def events_command(self) -> str:
        return f"sylph session show {self.session} --events"

    @property
    def resume_command(self) -> str:
        return f"sylph resume {self.session}"

    @property
    def last_turn(self) -> str:
        return next((event.turn for event in reversed(self.events) if isinstance(event.body, facts.TurnStarted)), "")

    def task_command(self, turn: str) -> str:
        return f"sylph task show {self.session}.{turn.removeprefix('t')}"


CheckFunction = Callable[[DiagnosisCase], Iterable[DiagnosisFinding]]


def event_seqs(events: Iterable[Event]) -> tuple[int, ...]:
    return tuple(event.seq for event in events)
