"""A command for the journaled runner: what is ordered, and what became of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Why = Literal["", "time", "memory", "stopped"]
"""What ended a command that did not end by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command and its limits. Of its output the first `head` and the last `tail` bytes are kept."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float | None = None
    memory: int = 0
    head: int = 5_000_000
    tail: int = 5_000_000
    job: bool = False
    outside: bool = False
    """To be run outside of the sandbox. Heeded only where the call was judged, and allowed, so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended. `exit` is minus the signal that killed it, `failed` the errno if it could not start."""

    exit: int
    head: bytes
    tail: bytes = b""
    dropped: int = 0
    why: Why = ""
    seconds: float = 0.0
    left: bool = False
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A command whose end nobody saw: what is known of it all the same."""

    evidence: str
    head: bytes = b""


Show = Callable[[bytes], None]


class Runs(Protocol):
    """Commands of one call: started, found again after a crash, stopped."""

    async def run(self, order: Order, show: Show) -> Ran | Lost: ...

    async def attach(self, show: Show) -> Ran | Lost | None:
        """What became of a command that was ordered before; None if it never began."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command in the background, by the id of the call that started it."""

    id: str
    command: str
    state: Literal["running", "ended", "lost"]
    exit: int | None = None
    why: Why = ""
    seconds: float = 0.0
    bytes: int = 0


class Jobs(Protocol):
    """The background commands of one session. They live on when the turn ends, and when Sylph does."""

    async def start(self, id: str, order: Order) -> Job: ...

    def all(self) -> list[Job]: ...

    def find(self, id: str) -> Job | None: ...

    def recover(self, id: str) -> Job | None:
        """The job, if a runner has begun it before a crash; None if none has, and then none will."""
        ...

    def output(self, id: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes of what it printed, from `offset` on."""
        ...

    async def wait(self, id: str, seconds: float) -> Job | None:
        """Returns when the job has ended, or the time is over; then it still runs."""
        ...

    async def stop(self, id: str) -> Job | None: ...
