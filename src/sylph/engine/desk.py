"""What the executor and those who decide about calls need of the session they work for."""

from collections.abc import Callable, Sequence
from typing import Protocol

from sylph.core.events import Fact, Signal
from sylph.core.facts import Answered, Asked
from sylph.engine.summary import Summary


class Desk(Protocol):
    @property
    def summary(self) -> Summary: ...
    async def emit(
        self, *facts: Fact, durable: bool | None = None, blobs: Sequence[tuple[str, bytes]] = ()
    ) -> object: ...
    def show(self, signal: Signal) -> None: ...
    async def ask(self, build: Callable[[str], Asked], wait: float | None = None) -> Answered: ...
    def heard(self, call: str) -> Answered | None:
        """What was said about a call before, if anything was."""
        ...

    async def hold(self) -> None: ...
    async def whole(self, call: str) -> str | None: ...
