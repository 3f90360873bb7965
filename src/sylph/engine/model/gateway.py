"""Every model call goes through here: one at a time per slot, watched, tried again where that is safe, and counted."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core import facts, signals
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ErrorReport, NoModel, ProviderError
from sylph.core.events import Fact, Signal
from sylph.core.facts.budget import BudgetStopped
from sylph.core.messages import Message, Usage
from sylph.core.provider import (
    ArgumentsChunk,
    KeepAlive,
    LearningProvider,
    ModelInfo,
    ModelReply,
    ModelRequest,
    Provider,
    ReasoningChunk,
    TextChunk,
)
from sylph.engine.budget.accounts import BudgetOwner
from sylph.engine.budget.ledger import (
    UNMETERED,
    AttemptBudget,
    BudgetLedger,
    BudgetRequest,
    LostAttempt,
    NoBudgetLedger,
)
from sylph.engine.folds.session_state import PromptFingerprint
from sylph.engine.model.circuit_breaker import CircuitBreaker
from sylph.engine.model.concurrency_limit import ConcurrencyLimiter
from sylph.engine.model.prompt_digest import prefix_digest, prompt_digest
from sylph.engine.model.retry import RetryPolicy, may_cost
from sylph.engine.redact.redactor import NoRedaction

FIRST, WHOLE = "first", "whole"
INTERRUPTED = "interrupted"
CANCELLED = ErrorReport("cancelled", "The answer was cut off.")
# So many conversations have their last messages remembered, to tell quickly that nothing of them has changed.
REMEMBERED_CONVERSATIONS = 64


class ModelCall(Struct, frozen=True, kw_only=True):
    """One request, for whom, and how urgent (lower goes first)."""

    model: str
    request: ModelRequest
    role: str = "main"
    round: int = 0
    priority: int = 0
    head: str = ""
    budget_owner: BudgetOwner | None = None
    """Whose budgets it draws on."""
    last_prompt: PromptFingerprint | None = None
    """The last request of the same conversation, and what has changed it since (`moved`)."""
    moved: str = ""


class CallReporter(Struct, frozen=True, kw_only=True):
    """How a call reports: facts are written, signals shown."""

    emit: Callable[[Fact], Awaitable[object]]
    show: Callable[[Signal], None]


class ModelAnswer(Struct, frozen=True, kw_only=True):
    reply: ModelReply
    model: str
    cost: int | None
    ms: int
    first_ms: int
    grant: AttemptBudget = UNMETERED
    """What was put aside for it, until the log has the answer."""


class _AttemptStream(Struct):
    """What has come of one attempt so far."""

    began: float
    asked: bool = False
    first_ms: int = 0
    pieces: list[str] = field(default_factory=list[str])
    heard: bool = False
    spoke: bool = False


CostFunction = Callable[[Usage, ModelInfo], int | None]
"""What an answer costs, in micro-dollars; None where nobody knows."""


def compute_cost(usage: Usage, info: ModelInfo) -> int | None:
    """Micro-dollars, or None where a price is not known: unknown is never shown as free."""
    if info.price_in is None or info.price_out is None:
        return None
    price_in, price_out, cached = info.price_in, info.price_out, info.price_cached
    if info.above is not None and usage.input > info.above:
        price_in, price_out = info.above_in or price_in, info.above_out or price_out
        cached = cached if info.above_cached is None else info.above_cached
    cached = price_in if cached is None else cached
    written = max(price_in, info.price_written or 0)
    fresh = max(usage.input - usage.cached - usage.written, 0)
    tokens = ((fresh, price_in), (usage.cached, cached), (usage.written, written), (usage.output, price_out))
    return round(sum(count * price for count, price in tokens) / 1_000_000)


class ModelGateway:
    def __init__(
        self,
        providers: Mapping[str, Provider],
        retry_policy: RetryPolicy | None = None,
        clock: Clock | None = None,
        tariff: CostFunction = compute_cost,
        ledger: BudgetLedger | None = None,
    ) -> None:
        self.providers = providers
        self.ledger = ledger or NoBudgetLedger()
        self._asked: dict[str, Provider] = {}
        self._former: list[Provider] = []
        self._tariff = tariff
        self._retry_policy = retry_policy or RetryPolicy()
        self._clock = clock or SystemClock()
        self._slots = ConcurrencyLimiter(self._retry_policy.concurrency)
        self._breakers: dict[str, CircuitBreaker] = {}
        self._seen: dict[str, tuple[str, tuple[Message, ...]]] = {}
        self.redactor = NoRedaction()
        """What every request goes through before it goes out, and every answer before anybody makes use of it."""

    def find_provider(self, model: str) -> tuple[Provider, str]:
        """`provider/model` → the provider and the name it knows the model by."""
        name, _, bare = model.partition("/")
        provider = self.providers.get(name)
        if provider is None or not bare:
            known = ", ".join(sorted(self.providers)) or "none"
            raise NoModel(
                f"There is no provider for the model {model!r}. Known providers: {known}.",
                details={"model": model},
                next=["Give a model as `provider/model`.", "`sylph models` lists what can be used."],
            )
        self._asked[name] = provider
        return provider, bare

    def model_info(self, model: str) -> ModelInfo:
        provider, bare = self.find_provider(model)
        return provider.info(bare)

    def replace_providers(self, providers: Mapping[str, Provider], retry_policy: RetryPolicy) -> None:
        """Goes on with other services and another patience. Calls under way end as they began."""
        if providers is not self.providers:
            self._former += self._asked.values()
            self.providers, self._asked, self._breakers = providers, {}, {}
        self._retry_policy = retry_policy
        self._slots.resize(retry_policy.concurrency)

    async def close(self) -> None:
        for provider in (*self._former, *self._asked.values()):
            await provider.close()
        await self.ledger.close()

    @asynccontextmanager
    async def settle_on_exit(self, answer: ModelAnswer, reporter: CallReporter) -> AsyncGenerator[None, None]:
        """Inside of it the answer is written to the log; then what was put aside for it and not needed is free."""
        try:
            yield
        except BaseException:
            self.ledger.abandon(answer.grant)
            raise
        await self._settle_reservation(answer.grant, reporter)

    async def _settle_reservation(self, grant: AttemptBudget, reporter: CallReporter) -> None:
        for fact in await self.ledger.settle(grant):
            await reporter.emit(fact)

    async def call_model(self, call: ModelCall, reporter: CallReporter) -> ModelAnswer:  # noqa: PLR0915 - one flat table of how an attempt ends
        """The whole reply. Retries only as long as nothing of it has been shown."""
        provider, bare = self.find_provider(call.model)
        breaker = self._breaker_for(provider)
        call, info = await _with_model_info(call, provider, bare)
        call = replace(call, request=self.redactor.redact_request(call.request))
        call, body, grant = await self._begin_call(call, provider, info, reporter)
        attempt = 0
        while True:
            attempt += 1
            stream = _AttemptStream(self._clock.ticks())
            try:
                async with self._slots.hold_slot(call.priority):
                    breaker.ensure_closed()
                    reply = await self._read_stream(provider, call.request, body, stream, reporter)
            except asyncio.CancelledError:
                if stream.spoke or (stream.asked and grant.reservation):
                    # Somebody saw it, or it may be charged: so it happened.
                    await reporter.emit(self._failure_fact(call, CANCELLED, attempt, stream, grant=grant))
                await self.ledger.settle(grant)
                raise
            except ProviderError as error:
                breaker.record_failure(error)
                error.shown = stream.spoke
                wait = None if stream.spoke else self._retry_policy.retry_delay(error, attempt)
                paid = grant if may_cost(error, heard=stream.heard) else UNMETERED
                await reporter.emit(self._failure_fact(call, error.trouble, attempt, stream, wait=wait, grant=paid))
                await self._settle_reservation(grant, reporter)
                if wait is None:
                    raise
                reporter.show(signals.Progress(text=f"{error} Trying again in {wait:.1f} s."))
                await self._clock.sleep(wait)
                grant = await self._reserve_budget(call, body, info, reporter, attempt + 1, bound=grant.bound)
            except BaseException:
                self.ledger.abandon(grant)
                raise
            else:
                breaker.record_success()
                return self._build_answer(self.redactor.redact_reply(reply), call.model, info, stream, grant)

    async def _begin_call(
        self, call: ModelCall, provider: Provider, info: ModelInfo, reporter: CallReporter
    ) -> tuple[ModelCall, bytes, AttemptBudget]:
        """The call as the budget allows it, its bytes, and what is put aside for it; from here on the log has it."""
        if call.budget_owner:
            for lost in await self.ledger.lost_attempts(call.budget_owner):
                await reporter.emit(_interruption_fact(lost))
        body = provider.body(call.request)
        grant = await self._reserve_budget(call, body, info, reporter)
        try:
            if grant.most is not None and grant.most != call.request.max_tokens:
                limited = replace(call, request=replace(call.request, max_tokens=grant.most))
                shorter = provider.body(limited.request)
                if shorter == body and grant.reservation:
                    # This service cannot be told how long its answer may be: it may be as long as it can.
                    await self.ledger.settle(grant)
                    grant = await self._reserve_budget(call, body, info, reporter, bound=False)
                else:
                    call, body = limited, shorter
            await reporter.emit(self._request_fact(call, body, info, grant))
        except BaseException:
            self.ledger.abandon(grant)
            raise
        return call, body, grant

    async def _reserve_budget(
        self,
        call: ModelCall,
        body: bytes,
        info: ModelInfo,
        reporter: CallReporter,
        attempt: int = 1,
        *,
        bound: bool = True,
    ) -> AttemptBudget:
        if call.budget_owner is None:
            return UNMETERED
        ask = BudgetRequest(
            owner=call.budget_owner,
            model=call.model,
            role=call.role,
            body=len(body),
            messages=call.request.messages,
            info=info,
            most=call.request.max_tokens,
            attempt=attempt,
            bound=bound,
        )
        granted = await self.ledger.reserve(ask)
        if isinstance(granted, BudgetStopped):
            granted = replace(granted, window=info.window or 0)
            await reporter.emit(granted)
            raise self.ledger.budget_spent_error(granted, call.budget_owner.session)
        return granted

    async def _read_stream(
        self, provider: Provider, request: ModelRequest, body: bytes, stream: _AttemptStream, reporter: CallReporter
    ) -> ModelReply:
        loop = asyncio.get_running_loop()
        stream.asked = True
        chunks = provider.stream(request, body)
        try:
            async with asyncio.timeout(self._retry_policy.first_seconds) as watchdog:
                async for chunk in chunks:
                    stream.heard = True
                    watchdog.reschedule(loop.time() + self._retry_policy.idle_seconds)
                    if isinstance(chunk, ModelReply):
                        return chunk
                    if not isinstance(chunk, KeepAlive):
                        self._show_chunk(chunk, stream, reporter)
        except TimeoutError as error:
            raise self._timeout_error(provider, stream) from error
        finally:
            await chunks.aclose()
        raise ProviderError("cut", f"The answer of {provider.name} ended before it was complete.")

    def _show_chunk(
        self, chunk: TextChunk | ReasoningChunk | ArgumentsChunk, stream: _AttemptStream, reporter: CallReporter
    ) -> None:
        if not stream.spoke:
            stream.spoke, stream.first_ms = True, self._clock.elapsed_ms(stream.began, FIRST)
        match chunk:
            case TextChunk(text):
                stream.pieces.append(text)
                reporter.show(signals.TextDelta(text=text))
            case ReasoningChunk(text):
                reporter.show(signals.ReasoningDelta(text=text))
            case ArgumentsChunk(index, name, text):
                reporter.show(signals.ArgsDelta(index=index, name=name, text=text))

    def _timeout_error(self, provider: Provider, stream: _AttemptStream) -> ProviderError:
        setting = "idle_seconds" if stream.heard else "first_seconds"
        waited = self._retry_policy.idle_seconds if stream.heard else self._retry_policy.first_seconds
        return ProviderError(
            "timeout",
            f"{provider.name} sent nothing for {waited:.0f} s.",
            next=[
                "Try it again.",
                f"`limits.{setting}` in the config sets how long to wait.",
            ],
        )

    def _build_answer(
        self, reply: ModelReply, model: str, info: ModelInfo, stream: _AttemptStream, grant: AttemptBudget
    ) -> ModelAnswer:
        ms = self._clock.elapsed_ms(stream.began, WHOLE)
        return ModelAnswer(
            reply=reply,
            model=model,
            cost=self._tariff(reply.usage, info),
            ms=ms,
            first_ms=stream.first_ms if stream.spoke else ms,
            grant=grant,
        )

    def _failure_fact(
        self,
        call: ModelCall,
        trouble: ErrorReport,
        attempt: int,
        stream: _AttemptStream,
        *,
        grant: AttemptBudget,
        wait: float | None = None,
    ) -> facts.ModelFailed:
        usage, most = self.ledger.assumed_usage(grant) or (None, None)
        return facts.ModelFailed(
            model=call.model,
            trouble=trouble,
            attempt=attempt,
            retry_ms=None if wait is None else round(wait * 1000),
            partial="".join(stream.pieces),
            role=call.role,
            usage=usage,
            cost=most,
        )

    def _request_fact(
        self, call: ModelCall, body: bytes, info: ModelInfo, grant: AttemptBudget
    ) -> facts.ModelRequested:
        messages = call.request.messages
        missed = self._find_prefix_change(call) if call.role == "main" else ""
        tail = prefix_digest(messages)
        if call.request.family:
            self._seen.pop(call.request.family, None)
            self._seen[call.request.family] = (tail, messages)
            if len(self._seen) > REMEMBERED_CONVERSATIONS:
                del self._seen[next(iter(self._seen))]
        kept = call.last_prompt.bytes if call.last_prompt and not missed else 0
        return facts.ModelRequested(
            model=call.model,
            round=call.round,
            role=call.role,
            messages=len(messages),
            bytes=len(body),
            digest=prompt_digest(body),
            head=call.head,
            tail=tail,
            window=info.window or 0,
            kept=kept if call.role == "main" else None,
            missed=missed,
            reserved=grant.reserved,
            answer=info.output if grant.most is None else grant.most,
            limited=grant.most is not None,
            chat_only=info.calls is False,
        )

    def _find_prefix_change(self, call: ModelCall) -> str:
        """What of the last request this one does not repeat; empty if it repeats all."""
        before = call.last_prompt
        if before is None:
            return "first"
        if before.model != call.model:
            return "model"
        for what, then, now in zip(("system", "tools"), before.head.split("-"), call.head.split("-"), strict=False):
            if then != now:
                return what
        repeated = call.request.messages[: before.messages]
        # In the same process it is the same messages, which need not be put into bytes to be compared.
        known = self._seen.get(call.request.family, ("", ()))
        if known == (before.tail, repeated) or prefix_digest(repeated) == before.tail:
            return ""
        return call.moved or "history"

    def _breaker_for(self, provider: Provider) -> CircuitBreaker:
        if provider.name not in self._breakers:
            self._breakers[provider.name] = CircuitBreaker(
                provider.name, self._clock, failures=self._retry_policy.failures
            )
        return self._breakers[provider.name]


async def _with_model_info(call: ModelCall, provider: Provider, bare: str) -> tuple[ModelCall, ModelInfo]:
    """The call with what is known of its model, once the service was asked for what it alone knows."""
    if isinstance(provider, LearningProvider):
        await provider.learn(bare)
    info = provider.info(bare)
    if info.window:
        call = replace(call, request=replace(call.request, window=info.window))
    return call, info


def _interruption_fact(lost: LostAttempt) -> facts.ModelFailed:
    return facts.ModelFailed(
        model=lost.model,
        trouble=ErrorReport(INTERRUPTED, "Sylph was stopped while the model answered; it may have been charged."),
        attempt=lost.attempt,
        role=lost.role,
        usage=lost.usage,
        cost=lost.cost,
        turn=lost.turn,
    )
