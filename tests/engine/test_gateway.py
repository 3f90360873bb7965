"""Every model call goes through one door: waited for, watched, tried again where that is safe, and counted."""

import asyncio
import math
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import PATIENCE

from sylph.core import facts, signals
from sylph.core.errors import FailureKind, NoModel, ProviderError
from sylph.core.events import Fact, Signal
from sylph.core.messages import Message, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, KeepAlive, ModelInfo, ModelRequest, ReasoningChunk, TextChunk
from sylph.engine.model.circuit_breaker import CircuitBreaker
from sylph.engine.model.concurrency_limit import ConcurrencyLimiter
from sylph.engine.model.gateway import CallReporter, ModelAnswer, ModelCall, ModelGateway, compute_cost
from sylph.engine.model.retry import RetryPolicy
from sylph.testing import FakeClock, ScriptedProvider, ScriptLine, say

QUICK = RetryPolicy(base=0.001, first_seconds=60.0, idle_seconds=60.0)
REQUEST = ModelRequest(model="model", system="", messages=(Message("user", "hello"),))
BUSY = ProviderError("overloaded", "Too much to do.")


class Chunks(ScriptedProvider):
    """A model whose every stream is given chunk by chunk; a number is a wait, an error is raised."""

    def __init__(self, *streams: list[Chunk | float | ProviderError]) -> None:
        super().__init__([])
        self._streams = list(streams)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002
        self.requests.append(request)
        for item in self._streams.pop(0):
            if isinstance(item, ProviderError):
                raise item
            if isinstance(item, float | int):
                await asyncio.sleep(item)
            else:
                yield item


class Ear:
    """Hears what a call reports."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.signals: list[Signal] = []

    async def _emit(self, fact: Fact) -> None:
        self.facts.append(fact)

    async def ask(self, gateway: ModelGateway, *, model: str = "scripted/model") -> ModelAnswer:
        return await gateway.call_model(
            ModelCall(model=model, request=REQUEST), CallReporter(emit=self._emit, show=self.signals.append)
        )

    @property
    def failures(self) -> list[facts.ModelFailed]:
        return [fact for fact in self.facts if isinstance(fact, facts.ModelFailed)]


def _gateway(*lines: ScriptLine, retry_policy: RetryPolicy = QUICK, clock: FakeClock | None = None) -> ModelGateway:
    return ModelGateway({"scripted": ScriptedProvider(lines)}, retry_policy, clock)


async def test_everything_a_model_says_is_shown_as_it_comes() -> None:
    model = Chunks([ReasoningChunk("Hm."), TextChunk("Yes"), ArgumentsChunk(0, "look", "{}"), KeepAlive(), say("Yes")])
    ear = Ear()
    answer = await ear.ask(ModelGateway({"scripted": model}))
    assert answer.reply.text == "Yes"
    assert ear.signals == [
        signals.ReasoningDelta(text="Hm."),
        signals.TextDelta(text="Yes"),
        signals.ArgsDelta(index=0, name="look", text="{}"),
    ]


@pytest.mark.parametrize("kind", ["rate_limited", "overloaded", "server_error", "network", "timeout", "format", "cut"])
async def test_what_may_pass_is_tried_again(kind: FailureKind) -> None:
    ear = Ear()
    assert (await ear.ask(_gateway(ProviderError(kind, "no"), say("Yes.")))).reply.text == "Yes."
    assert [(fact.attempt, fact.retry_ms is not None) for fact in ear.failures] == [(1, True)]
    assert isinstance(ear.signals[0], signals.Progress)


@pytest.mark.parametrize("kind", ["auth", "not_found", "refusal", "bad_request", "overflow"])
async def test_what_needs_somebody_to_act_is_not_tried_again(kind: FailureKind) -> None:
    ear = Ear()
    with pytest.raises(ProviderError):
        await ear.ask(_gateway(ProviderError(kind, "no"), say("Yes.")))
    assert [fact.retry_ms for fact in ear.failures] == [None]


async def test_it_gives_up_after_so_many_tries() -> None:
    ear = Ear()
    with pytest.raises(ProviderError, match="Too much"):
        await ear.ask(_gateway(*[BUSY] * 9, retry_policy=RetryPolicy(base=0.001, retries=2)))
    assert [fact.retry_ms is None for fact in ear.failures] == [False, False, True]


@pytest.mark.parametrize("end", [ProviderError("network", "gone"), None])
async def test_nothing_is_tried_again_once_something_was_shown(end: ProviderError | None) -> None:
    ear = Ear()
    with pytest.raises(ProviderError) as caught:
        await ear.ask(
            ModelGateway({"scripted": Chunks([TextChunk("I th"), TextChunk("ink"), *([end] if end else [])])})
        )
    assert (caught.value.failure, ear.failures[0].partial) == ("network" if end else "cut", "I think")


async def test_an_answer_that_is_cut_before_it_began_is_asked_for_again() -> None:
    ear = Ear()
    answer = await ear.ask(ModelGateway({"scripted": Chunks([KeepAlive()], [say("Yes.")])}, QUICK))
    assert (answer.reply.text, ear.failures[0].trouble.kind) == ("Yes.", "cut")


async def test_the_service_says_how_long_to_wait_and_is_heard() -> None:
    ear = Ear()
    await ear.ask(_gateway(ProviderError("rate_limited", "Slow down.", retry_after=0.02), say("Yes.")))
    assert ear.failures[0].retry_ms == 20


async def test_a_wait_that_is_too_long_is_not_waited() -> None:
    ear = Ear()
    with pytest.raises(ProviderError):
        await ear.ask(_gateway(ProviderError("rate_limited", "Tomorrow.", retry_after=86_400), say("Yes.")))
    assert ear.failures[0].retry_ms is None


async def test_the_waits_grow_with_some_chance_in_them_and_end() -> None:
    ear = Ear()
    retry_policy = RetryPolicy(base=0.004, longest=0.01, retries=4)
    await ear.ask(_gateway(*[BUSY] * 4, say("Yes."), retry_policy=retry_policy))
    for fact, step in zip(ear.failures, (4, 8, 10, 10), strict=True):
        assert fact.retry_ms is not None
        assert 0.75 * step - 1 <= fact.retry_ms <= 1.25 * step + 1


@pytest.mark.parametrize(
    ("stream", "waited"),
    [([math.inf], "first 0.02"), ([KeepAlive(), math.inf], "idle 0.05"), ([TextChunk("Hm"), math.inf], "idle 0.05")],
)
async def test_a_silent_service_is_given_up(stream: list[Chunk | float | ProviderError], waited: str) -> None:
    retry_policy = RetryPolicy(retries=0, first_seconds=2.0 if "idle" in waited else 0.02, idle_seconds=0.05)
    ear = Ear()
    with pytest.raises(ProviderError, match="sent nothing for 0 s"):
        await ear.ask(ModelGateway({"scripted": Chunks(stream)}, retry_policy))
    assert ear.failures[0].trouble.next


async def test_signs_of_life_keep_the_watchdog_quiet() -> None:
    retry_policy = RetryPolicy(first_seconds=2.0, idle_seconds=2.0)
    beats = [item for _ in range(6) for item in (0.4, KeepAlive())]
    answer = await Ear().ask(ModelGateway({"scripted": Chunks([*beats, say("At last.")])}, retry_policy))
    assert answer.reply.text == "At last."


async def test_a_service_that_keeps_failing_is_left_alone_and_then_tried_once() -> None:
    clock, model = FakeClock(), ScriptedProvider([*[BUSY] * 6, say("Back.")])
    gateway = ModelGateway({"scripted": model}, RetryPolicy(base=0.0, retries=4), clock)
    ear = Ear()
    for failure in ("overloaded", "breaker_open"):
        with pytest.raises(ProviderError) as caught:
            await ear.ask(gateway)
        assert caught.value.failure == failure
    assert len(model.requests) == 5
    clock.advance(31)
    with pytest.raises(ProviderError, match="left alone"):
        await ear.ask(gateway)
    assert len(model.requests) == 6
    clock.advance(31)
    assert (await ear.ask(gateway)).reply.text == "Back."
    assert len(model.requests) == 7


def test_while_one_finds_out_the_others_wait() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker("x", clock, failures=1)
    breaker.record_failure(BUSY)
    clock.advance(31)
    breaker.ensure_closed()
    with pytest.raises(ProviderError):
        breaker.ensure_closed()
    breaker.record_success()
    breaker.ensure_closed()


def test_a_refusal_proves_that_the_service_is_there() -> None:
    breaker = CircuitBreaker("x", FakeClock(), failures=2)
    for error in (BUSY, ProviderError("bad_request", "What?"), BUSY, ProviderError("breaker_open", "…")):
        breaker.record_failure(error)
    breaker.ensure_closed()


@pytest.mark.parametrize("model", ["model", "nowhere/model", "scripted/", ""])
async def test_a_model_nobody_has_is_an_error_that_names_who_there_is(model: str) -> None:
    with pytest.raises(NoModel, match="Known providers: scripted") as caught:
        await Ear().ask(_gateway(), model=model)
    assert caught.value.trouble.next
    with pytest.raises(NoModel, match="none"):
        ModelGateway({}).model_info(model)


@pytest.mark.parametrize(
    ("usage", "info", "price"),
    [
        (Usage(1_000, 100), ModelInfo(name="m"), None),
        (Usage(1_000, 100), ModelInfo(name="m", price_in=2_000_000), None),
        (Usage(1_000, 100), ModelInfo(name="m", price_in=0, price_out=0), 0),
        (Usage(1_000, 100), ModelInfo(name="m", price_in=2_000_000, price_out=10_000_000), 3_000),
        (Usage(1_000, 0, 400), ModelInfo(name="m", price_in=2_000_000, price_out=0, price_cached=200_000), 1_280),
        (Usage(1_000, 0, 400), ModelInfo(name="m", price_in=2_000_000, price_out=0), 2_000),
        (Usage(0, 0, 400), ModelInfo(name="m", price_in=2_000_000, price_out=0, price_cached=0), 0),
    ],
)
def test_what_an_answer_costs(usage: Usage, info: ModelInfo, price: int | None) -> None:
    assert compute_cost(usage, info) == price


async def test_the_request_is_written_down_before_it_goes_out() -> None:
    ear = Ear()
    await ear.ask(_gateway(say("Yes."), clock=FakeClock()))
    (requested,) = ear.facts
    assert isinstance(requested, facts.ModelRequested)
    assert (requested.messages, requested.bytes > 0, len(requested.digest)) == (1, True, 32)


async def test_whoever_is_urgent_goes_first_and_nobody_is_overtaken_by_an_equal() -> None:
    slots, order = ConcurrencyLimiter(1), list[str]()

    async def use(name: str, priority: int) -> None:
        async with slots.hold_slot(priority):
            order.append(name)
            await asyncio.sleep(0)

    names = [("first", 9), ("late", 1), ("also late", 1), ("urgent", 0)]
    await asyncio.gather(*(use(name, priority) for name, priority in names))
    assert order == ["first", "urgent", "late", "also late"]


async def test_a_slot_handed_to_somebody_who_gave_up_goes_to_the_next() -> None:
    slots, order = ConcurrencyLimiter(1), list[str]()

    async def use(name: str) -> None:
        async with slots.hold_slot():
            order.append(name)

    async with slots.hold_slot():
        gone, patient = asyncio.create_task(use("gone")), asyncio.create_task(use("patient"))
        await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone, patient], timeout=PATIENCE)
    assert order == ["patient"]


@given(
    st.integers(1, 3), st.lists(st.tuples(st.sampled_from(["take", "drop", "step"]), st.integers(0, 9)), max_size=40)
)
def test_no_slot_is_lost_or_invented_whoever_gives_up_when(limit: int, moves: list[tuple[str, int]]) -> None:
    async def play() -> None:
        slots, running = ConcurrencyLimiter(limit), set[int]()

        async def use(id: int, priority: int) -> None:
            async with slots.hold_slot(priority):
                running.add(id)
                assert len(running) <= limit
                try:
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                finally:
                    running.discard(id)

        tasks: list[asyncio.Task[None]] = []
        for move, number in moves:
            if move == "take":
                tasks.append(asyncio.create_task(use(len(tasks), number)))
            elif move == "drop" and tasks:
                tasks[number % len(tasks)].cancel()
            else:
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(*(use(-number, 0) for number in range(1, limit + 2))), PATIENCE)

    asyncio.run(play())
