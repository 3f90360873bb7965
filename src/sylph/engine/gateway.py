"""Every model call goes through here: one at a time per slot, watched, tried again where that is safe, and counted."""

import asyncio
import hashlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core import facts, signals
from sylph.core.budget import BudgetStopped
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import NoModel, ProviderError, Trouble
from sylph.core.events import Fact, Signal
from sylph.core.messages import Message, Usage
from sylph.core.provider import (
    Alive,
    Arguments,
    Learning,
    ModelInfo,
    Provider,
    Reasoning,
    Reply,
    Request,
    Text,
    ToolSpec,
)
from sylph.engine.breaker import Breaker
from sylph.engine.budget.accounts import Payer
from sylph.engine.budget.purse import NOTHING, Ask, Grant, Lost, NoPurse, Purse
from sylph.engine.redact.veil import Veil
from sylph.engine.slots import Slots
from sylph.engine.summary import Prompt

FIRST, WHOLE = "first", "whole"
INTERRUPTED = "interrupted"
# A service that says one of these has not begun to answer, and charges nothing.
REJECTED = frozenset({"rate_limited", "overloaded", "overflow", "auth", "not_found", "bad_request", "breaker_open"})
# Whoever stands between us and the service says these: what the service itself did, nobody knows.
AMBIGUOUS = (408, 502, 504)
CANCELLED = Trouble("cancelled", "The answer was cut off.")
# So many conversations have their last messages remembered, to tell quickly that nothing of them has changed.
REMEMBERED = 64


class Patience(Struct, frozen=True, kw_only=True):
    """How long and how often a model call is waited for and tried again."""

    retries: int = 4
    base: float = 0.5
    longest: float = 30.0
    longest_asked: float = 120.0
    first_seconds: float = 300.0
    idle_seconds: float = 120.0
    concurrency: int = 8
    failures: int = 5
    """So many in a row, and a service is left alone for a while."""

    def wait(self, error: ProviderError, attempt: int) -> float | None:
        """Seconds until the next try, or None: it failed for good."""
        if not error.passing or attempt > self.retries:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_asked else None
        step = min(self.base * 2 ** (attempt - 1), self.longest)
        return step * random.uniform(0.75, 1.25)


class Call(Struct, frozen=True, kw_only=True):
    """One request, for whom, and how urgent (lower goes first)."""

    model: str
    request: Request
    role: str = "main"
    round: int = 0
    priority: int = 0
    head: str = ""
    payer: Payer | None = None
    """Whose budgets it draws on."""
    before: Prompt | None = None
    """The last request of the same conversation, and what has changed it since (`moved`)."""
    moved: str = ""


class Voice(Struct, frozen=True, kw_only=True):
    """How a call reports: facts are written, signals shown."""

    emit: Callable[[Fact], Awaitable[object]]
    show: Callable[[Signal], None]


class Answer(Struct, frozen=True, kw_only=True):
    reply: Reply
    model: str
    cost: int | None
    ms: int
    first_ms: int
    grant: Grant = NOTHING
    """What was put aside for it, until the log has the answer."""


class _Stream(Struct):
    """What has come of one attempt so far."""

    began: float
    asked: bool = False
    first_ms: int = 0
    pieces: list[str] = field(default_factory=list[str])
    heard: bool = False
    spoke: bool = False


Tariff = Callable[[Usage, ModelInfo], int | None]
"""What an answer costs, in micro-dollars; None where nobody knows."""


def cost(usage: Usage, info: ModelInfo) -> int | None:
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


class Gateway:
    def __init__(
        self,
        providers: Mapping[str, Provider],
        patience: Patience | None = None,
        clock: Clock | None = None,
        tariff: Tariff = cost,
        purse: Purse | None = None,
    ) -> None:
        self.providers = providers
        self.purse = purse or NoPurse()
        self._asked: dict[str, Provider] = {}
        self._former: list[Provider] = []
        self._tariff = tariff
        self._patience = patience or Patience()
        self._clock = clock or SystemClock()
        self._slots = Slots(self._patience.concurrency)
        self._breakers: dict[str, Breaker] = {}
        self._seen: dict[str, tuple[str, tuple[Message, ...]]] = {}
        self.veil = Veil()
        """What every request goes through before it goes out, and every answer before anybody makes use of it."""

    def find(self, model: str) -> tuple[Provider, str]:
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

    def info(self, model: str) -> ModelInfo:
        provider, bare = self.find(model)
        return provider.info(bare)

    def adopt(self, providers: Mapping[str, Provider], patience: Patience) -> None:
        """Goes on with other services and another patience. Calls under way end as they began."""
        if providers is not self.providers:
            self._former += self._asked.values()
            self.providers, self._asked, self._breakers = providers, {}, {}
        self._patience = patience
        self._slots.resize(patience.concurrency)

    async def close(self) -> None:
        for provider in (*self._former, *self._asked.values()):
            await provider.close()
        await self.purse.close()

    @asynccontextmanager
    async def settling(self, answer: Answer, voice: Voice) -> AsyncGenerator[None, None]:
        """Inside of it the answer is written to the log; then what was put aside for it and not needed is free."""
        try:
            yield
        except BaseException:
            self.purse.leave(answer.grant)
            raise
        await self._settle(answer.grant, voice)

    async def _settle(self, grant: Grant, voice: Voice) -> None:
        for fact in await self.purse.settle(grant):
            await voice.emit(fact)

    async def call(self, call: Call, voice: Voice) -> Answer:  # noqa: PLR0915 - one flat table of how an attempt ends
        """The whole reply. Retries only as long as nothing of it has been shown."""
        provider, bare = self.find(call.model)
        breaker = self._breaker(provider)
        call, info = await _known(call, provider, bare)
        call = replace(call, request=self.veil.request(call.request))
        call, body, grant = await self._begin(call, provider, info, voice)
        attempt = 0
        while True:
            attempt += 1
            stream = _Stream(self._clock.ticks())
            try:
                async with self._slots.take(call.priority):
                    breaker.check()
                    reply = await self._listen(provider, call.request, body, stream, voice)
            except asyncio.CancelledError:
                if stream.spoke or (stream.asked and grant.hold):
                    # Somebody saw it, or it may be charged: so it happened.
                    await voice.emit(self._failed(call, CANCELLED, attempt, stream, grant=grant))
                await self.purse.settle(grant)
                raise
            except ProviderError as error:
                breaker.failed(error)
                error.shown = stream.spoke
                wait = None if stream.spoke else self._patience.wait(error, attempt)
                paid = grant if may_cost(error, heard=stream.heard) else NOTHING
                await voice.emit(self._failed(call, error.trouble, attempt, stream, wait=wait, grant=paid))
                await self._settle(grant, voice)
                if wait is None:
                    raise
                voice.show(signals.Progress(text=f"{error} Trying again in {wait:.1f} s."))
                await self._clock.sleep(wait)
                grant = await self._reserve(call, body, info, voice, attempt + 1, bound=grant.bound)
            except BaseException:
                self.purse.leave(grant)
                raise
            else:
                breaker.succeeded()
                return self._answer(self.veil.reply(reply), call.model, info, stream, grant)

    async def _begin(self, call: Call, provider: Provider, info: ModelInfo, voice: Voice) -> tuple[Call, bytes, Grant]:
        """The call as the budget allows it, its bytes, and what is put aside for it; from here on the log has it."""
        if call.payer:
            for lost in await self.purse.lost(call.payer):
                await voice.emit(_interrupted(lost))
        body = provider.body(call.request)
        grant = await self._reserve(call, body, info, voice)
        try:
            if grant.most is not None and grant.most != call.request.max_tokens:
                limited = replace(call, request=replace(call.request, max_tokens=grant.most))
                shorter = provider.body(limited.request)
                if shorter == body and grant.hold:
                    # This service cannot be told how long its answer may be: it may be as long as it can.
                    await self.purse.settle(grant)
                    grant = await self._reserve(call, body, info, voice, bound=False)
                else:
                    call, body = limited, shorter
            await voice.emit(self._requested(call, body, info, grant))
        except BaseException:
            self.purse.leave(grant)
            raise
        return call, body, grant

    async def _reserve(
        self, call: Call, body: bytes, info: ModelInfo, voice: Voice, attempt: int = 1, *, bound: bool = True
    ) -> Grant:
        if call.payer is None:
            return NOTHING
        ask = Ask(
            who=call.payer,
            model=call.model,
            role=call.role,
            body=len(body),
            messages=call.request.messages,
            info=info,
            most=call.request.max_tokens,
            attempt=attempt,
            bound=bound,
        )
        granted = await self.purse.reserve(ask)
        if isinstance(granted, BudgetStopped):
            granted = replace(granted, window=info.window or 0)
            await voice.emit(granted)
            raise self.purse.spent(granted, call.payer.session)
        return granted

    async def _listen(self, provider: Provider, request: Request, body: bytes, stream: _Stream, voice: Voice) -> Reply:
        loop = asyncio.get_running_loop()
        stream.asked = True
        chunks = provider.stream(request, body)
        try:
            async with asyncio.timeout(self._patience.first_seconds) as watchdog:
                async for chunk in chunks:
                    stream.heard = True
                    watchdog.reschedule(loop.time() + self._patience.idle_seconds)
                    if isinstance(chunk, Reply):
                        return chunk
                    if not isinstance(chunk, Alive):
                        self._show(chunk, stream, voice)
        except TimeoutError as error:
            raise self._silent(provider, stream) from error
        finally:
            await chunks.aclose()
        raise ProviderError("cut", f"The answer of {provider.name} ended before it was complete.")

    def _show(self, chunk: Text | Reasoning | Arguments, stream: _Stream, voice: Voice) -> None:
        if not stream.spoke:
            stream.spoke, stream.first_ms = True, self._clock.elapsed(stream.began, FIRST)
        match chunk:
            case Text(text):
                stream.pieces.append(text)
                voice.show(signals.TextDelta(text=text))
            case Reasoning(text):
                voice.show(signals.ReasoningDelta(text=text))
            case Arguments(index, name, text):
                voice.show(signals.ArgsDelta(index=index, name=name, text=text))

    def _silent(self, provider: Provider, stream: _Stream) -> ProviderError:
        setting = "idle_seconds" if stream.heard else "first_seconds"
        waited = self._patience.idle_seconds if stream.heard else self._patience.first_seconds
        return ProviderError(
            "timeout",
            f"{provider.name} sent nothing for {waited:.0f} s.",
            next=[
                "Try it again.",
                f"`limits.{setting}` in the config sets how long to wait.",
            ],
        )

    def _answer(self, reply: Reply, model: str, info: ModelInfo, stream: _Stream, grant: Grant) -> Answer:
        ms = self._clock.elapsed(stream.began, WHOLE)
        return Answer(
            reply=reply,
            model=model,
            cost=self._tariff(reply.usage, info),
            ms=ms,
            first_ms=stream.first_ms if stream.spoke else ms,
            grant=grant,
        )

    def _failed(
        self, call: Call, trouble: Trouble, attempt: int, stream: _Stream, *, grant: Grant, wait: float | None = None
    ) -> facts.ModelFailed:
        usage, most = self.purse.counted(grant) or (None, None)
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

    def _requested(self, call: Call, body: bytes, info: ModelInfo, grant: Grant) -> facts.ModelRequested:
        messages = call.request.messages
        missed = self._missed(call) if call.role == "main" else ""
        tail = prefix_digest(messages)
        if call.request.family:
            self._seen.pop(call.request.family, None)
            self._seen[call.request.family] = (tail, messages)
            if len(self._seen) > REMEMBERED:
                del self._seen[next(iter(self._seen))]
        kept = call.before.bytes if call.before and not missed else 0
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

    def _missed(self, call: Call) -> str:
        """What of the last request this one does not repeat; empty if it repeats all."""
        before = call.before
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

    def _breaker(self, provider: Provider) -> Breaker:
        if provider.name not in self._breakers:
            self._breakers[provider.name] = Breaker(provider.name, self._clock, failures=self._patience.failures)
        return self._breakers[provider.name]


async def _known(call: Call, provider: Provider, bare: str) -> tuple[Call, ModelInfo]:
    """The call with what is known of its model, once the service was asked for what it alone knows."""
    if isinstance(provider, Learning):
        await provider.learn(bare)
    info = provider.info(bare)
    if info.window:
        call = replace(call, request=replace(call.request, window=info.window))
    return call, info


def head(system: str, tools: Sequence[ToolSpec]) -> str:
    """What is byte-stable in a prompt, as two hashes: one of the system text, one of the tools."""
    parts = (system.encode(), msgspec.json.encode(tools))
    return "-".join(hashlib.blake2b(part, digest_size=6).hexdigest() for part in parts)


def prefix_digest(messages: Sequence[Message]) -> str:
    return hashlib.blake2b(msgspec.json.encode(messages), digest_size=12).hexdigest()


def prompt_digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def may_cost(error: ProviderError, *, heard: bool) -> bool:
    """Whether a service may charge for an attempt that failed: unless it did not get it, or did not take it."""
    return heard or (error.sent and error.failure not in REJECTED and error.status in (0, *AMBIGUOUS))


def _interrupted(lost: Lost) -> facts.ModelFailed:
    return facts.ModelFailed(
        model=lost.model,
        trouble=Trouble(INTERRUPTED, "Sylph was stopped while the model answered; it may have been charged."),
        attempt=lost.attempt,
        role=lost.role,
        usage=lost.usage,
        cost=lost.cost,
        turn=lost.turn,
    )
