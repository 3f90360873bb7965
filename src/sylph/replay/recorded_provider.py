"""A model, its clock and its routes as they were recorded."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from sylph.core import facts
from sylph.core.errors import ProviderError
from sylph.core.facts.budget import BudgetStopped
from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import Chunk, ModelInfo, ModelReply, ModelRequest, Provider, ReasoningChunk, TextChunk
from sylph.engine.folds.session_state import SessionState
from sylph.engine.model.gateway import FIRST, WHOLE, ModelGateway
from sylph.engine.model.prompt_digest import prefix_digest, prompt_digest
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.model.routes import MAIN, FallbackChoice
from sylph.engine.redact.redactor import NoRedaction
from sylph.replay.playback import Playback
from sylph.replay.recorded_courier import is_send_attempt
from sylph.replay.recorded_world import is_failing, next_of_kind, raise_if_failing


class RecordedClock:
    """Stands at the time of the fact that comes next."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback
        self._timer: asyncio.Timeout | None = None

    def now(self) -> int:
        events = self._playback.events
        return events[min(self._playback.at, len(events) - 1)].ts

    def ticks(self) -> float:
        return 0.0

    def elapsed_ms(self, began: float, what: str) -> int:  # noqa: ARG002 - the recording knows
        for event in self._playback.upcoming:
            match event.body:
                case facts.ModelResponded(ms=ms, first_ms=first) if what in (FIRST, WHOLE):
                    return first if what == FIRST else ms
                case facts.ToolFinished(call=call, ms=ms) if call == what:
                    return ms
                case _:
                    pass
        return 0

    def timeout(self, seconds: float | None) -> asyncio.Timeout:  # noqa: ARG002 - it ends when it ended then
        self._timer = asyncio.timeout(None)
        return self._timer

    def expire_timer(self) -> None:
        if self._timer:
            self._timer.reschedule(asyncio.get_running_loop().time())

    async def sleep(self, seconds: float, what: str = "") -> None:  # noqa: ARG002 - the same
        if what:
            await self._playback.wait_for_delivery(lambda event: is_send_attempt(event.body, what))
        await asyncio.sleep(0)


class RecordedRetryPolicy(RetryPolicy, frozen=True, kw_only=True):
    playback: Playback

    def retry_delay(self, error: ProviderError, attempt: int) -> float | None:  # noqa: ARG002 - the recording knows
        failed = next_of_kind(self.playback, facts.ModelFailed)
        return failed.retry_ms / 1000 if failed and failed.retry_ms is not None else None


class RecordedRedactor(NoRedaction):
    """Hides nothing: in a log no secret is. What is older than the veil went out as it was, or as it is hidden now."""

    def __init__(self, redactor: NoRedaction, playback: Playback) -> None:
        self._redactor, self._playback = redactor, playback

    def redact_request(self, request: ModelRequest) -> ModelRequest:
        requested = next_of_kind(self._playback, facts.ModelRequested)
        if requested is None or requested.tail == prefix_digest(request.messages):
            return request
        hidden = self._redactor.redact_request(request)
        return hidden if requested.tail == prefix_digest(hidden.messages) else request


class RecordedProvider:
    """Asks in the words of a real dialect; the answers are those of the recording."""

    def __init__(self, name: str, dialects: Sequence[Provider], playback: Playback) -> None:
        self.name, self._dialects, self._playback = name, tuple(dialects), playback

    def body(self, request: ModelRequest) -> bytes:
        """Services that mind an option are not sent it again: whichever way of saying it was used then is used."""
        raise_if_failing(self._playback)
        requested = next_of_kind(self._playback, facts.ModelRequested)
        limits = dict.fromkeys((request.max_tokens, None, requested.answer if requested else None))
        for dialect in self._dialects:
            for limit in limits:
                body = dialect.body(replace(request, max_tokens=limit))
                if requested and prompt_digest(body) == requested.digest:
                    # The next one will be asked in the same way.
                    self._dialects = (dialect, *(each for each in self._dialects if each is not dialect))
                    return body
        # Another head: which way it was cannot be told by it. One of each kind is kept for what has no head.
        self._dialects = tuple({type(each): each for each in reversed(self._dialects)}.values())[::-1]
        return self._dialects[0].body(request)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002 - recorded
        event = await self._playback.wait_for_fact(
            lambda event: isinstance(event.body, facts.ModelResponded | facts.ModelFailed) or is_failing(self._playback)
        )
        raise_if_failing(self._playback)
        if isinstance(event.body, facts.ModelResponded):
            yield TextChunk(event.body.text) if event.body.text else ReasoningChunk("")
            yield self._build_reply(event.body)
            return
        assert isinstance(event.body, facts.ModelFailed)
        failed = event.body
        if failed.trouble.kind == "cancelled":
            yield TextChunk(failed.partial) if failed.partial else ReasoningChunk("")
            await self._playback.wait_for_external()
        if failed.partial:
            yield TextChunk(failed.partial)
        error = ProviderError("bad_request", failed.trouble.message)
        # Whatever kind a newer version may have recorded.
        error.failure, error.trouble = failed.trouble.kind, failed.trouble  # pyright: ignore[reportAttributeAccessIssue]
        raise error

    def _build_reply(self, body: facts.ModelResponded) -> ModelReply:
        after = self._playback.at + 1
        called = [event.body for event in self._playback.events[after : after + body.calls]]
        calls = [
            ToolCall(each.call, each.name, each.arguments) for each in called if isinstance(each, facts.ToolCalled)
        ]
        # A fork may have left the last of them behind.
        calls += [ToolCall("", "", "")] * (body.calls - len(calls))
        return ModelReply(
            text=body.text,
            finish=body.finish,  # pyright: ignore[reportArgumentType] - as it was written
            reasoning=body.reasoning,
            calls=tuple(calls),
            usage=body.usage,
            native=body.native,
        )

    async def models(self) -> tuple[ModelInfo, ...]:
        return ()

    def info(self, model: str) -> ModelInfo:
        raise_if_failing(self._playback)
        wanted = (event.body for event in self._playback.upcoming)
        requested = next((body for body in wanted if isinstance(body, facts.ModelRequested | BudgetStopped)), None)
        if not isinstance(requested, facts.ModelRequested):
            return ModelInfo(name=model, window=requested.window or None if requested else None)
        return ModelInfo(
            name=model,
            window=requested.window or None,
            output=requested.answer,
            calls=False if requested.chat_only else None,
        )

    async def close(self) -> None:
        """There is nothing to close."""


class RecordedRoutes:
    """Whoever was asked then is asked again."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    def model_for(self, role: str, summary: SessionState) -> str:
        """Of whoever is asked next; the conversation's own follows from what was written before."""
        if role == MAIN:
            return summary.substitute or summary.model
        asked = (event.body for event in self._playback.upcoming if isinstance(event.body, facts.ModelRequested))
        return next((body.model for body in asked if body.role == role), summary.model)

    def choose_fallback(self, gateway: ModelGateway, request: ModelRequest, summary: SessionState) -> FallbackChoice:  # noqa: ARG002 - it is known
        fell = self._playback.next_event.body if self._playback.next_event else None
        return FallbackChoice(fell.to, fell.passed) if isinstance(fell, facts.ModelFellBack) else FallbackChoice()


def recorded_cost(playback: Playback, usage: Usage, info: ModelInfo) -> int | None:  # noqa: ARG001 - what it cost is written down
    responded = next_of_kind(playback, facts.ModelResponded)
    return responded.cost if responded else None
