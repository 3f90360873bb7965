"""What would be decided about a call, without making it."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from sylph.core.events import Fact, Signal
from sylph.core.facts.delivery import Notification
from sylph.core.facts.tool_call import Answered, Asked
from sylph.core.messages import ToolCall
from sylph.core.tool import CallAssessment
from sylph.engine.calls.executor import ToolExecutor
from sylph.engine.calls.policy import PolicyDecision
from sylph.engine.folds.session_state import SessionState


class DecisionPreview(Struct, frozen=True):
    """How a call is judged, and the way to the decision about it."""

    judged: CallAssessment
    ruling: PolicyDecision


def explain_decision(executor: ToolExecutor, call: ToolCall, summary: SessionState) -> DecisionPreview:
    """For a session like `summary`. Raises ToolError where there is no such tool, or its arguments are wrong."""
    desk = _InertSession(summary)
    ready = executor.judge_call(call, desk)
    return DecisionPreview(ready.judged, executor.permits.decide_call(ready, desk))


class _InertSession:
    """A desk at which nothing happens."""

    def __init__(self, summary: SessionState) -> None:
        self.summary = summary

    async def emit(
        self, *facts: Fact, durable: bool | None = None, blobs: Sequence[tuple[str, bytes]] = ()
    ) -> object: ...

    def publish_signal(self, signal: Signal) -> None: ...

    async def ask_user(self, build: Callable[[str], Asked], wait: float | None = None) -> Answered:
        raise NotImplementedError

    def earlier_answer(self, call: str) -> Answered | None: ...

    async def wait_while_paused(self) -> None: ...

    async def full_output(self, call: str) -> str | None: ...

    async def record_notice(self, notice: Notification, call: str) -> Sequence[str]:
        raise NotImplementedError
