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
    input: bool = False


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
