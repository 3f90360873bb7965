"""What would be decided about a call, without making it."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from sylph.core.deliveries import Notice
from sylph.core.events import Fact, Signal
from sylph.core.facts import Answered, Asked
from sylph.core.messages import ToolCall
from sylph.core.tool import Judged
from sylph.engine.executor import Executor
from sylph.engine.policy import Ruling
from sylph.engine.summary import Summary


class Explained(Struct, frozen=True):
    """How a call is judged, and the way to the decision about it."""

    judged: Judged
    ruling: Ruling


def explain(executor: Executor, call: ToolCall, summary: Summary) -> Explained:
    """For a session like `summary`. Raises ToolError where there is no such tool, or its arguments are wrong."""
    desk = _Nobody(summary)
    ready = executor.ready(call, desk)
    return Explained(ready.judged, executor.permits.ruling(ready, desk))


class _Nobody:
    """A desk at which nothing happens."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    async def emit(
        self, *facts: Fact, durable: bool | None = None, blobs: Sequence[tuple[str, bytes]] = ()
    ) -> object: ...

    def show(self, signal: Signal) -> None: ...

    async def ask(self, build: Callable[[str], Asked], wait: float | None = None) -> Answered:
        raise NotImplementedError

    def heard(self, call: str) -> Answered | None: ...

    async def hold(self) -> None: ...

    async def whole(self, call: str) -> str | None: ...

    async def post(self, notice: Notice, call: str) -> Sequence[str]:
        raise NotImplementedError
