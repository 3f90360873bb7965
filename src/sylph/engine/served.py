"""The world as it was: models, tools, notes, time and prices that answer from a recording."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sylph.core import facts
from sylph.core.budget import BudgetStopped
from sylph.core.changes import FilesChanged
from sylph.core.deliveries import DeliveryRecorded, Notice
from sylph.core.errors import ProviderError, Refused, SylphError, ToolError, Trouble
from sylph.core.events import Carried, Event, Fact
from sylph.core.messages import ToolCall, Usage
from sylph.core.permission import Effect, Reach, Risk
from sylph.core.plugin import Note, Situation
from sylph.core.provider import Chunk, ModelInfo, Provider, Reasoning, Reply, Request, Text
from sylph.core.tool import Context, Judged, Picture, Question, Result, Tool
from sylph.engine.gateway import FIRST, WHOLE, Gateway, Patience, prefix_digest, prompt_digest
from sylph.engine.leftovers import LeftOpen
from sylph.engine.outside import cut_off, sent
from sylph.engine.policy import Case, Ruling, decide
from sylph.engine.redact.veil import Veil
from sylph.engine.routes import MAIN, Choice
from sylph.engine.served_courier import sends
from sylph.engine.summary import Summary
from sylph.engine.tape import Tape
from sylph.engine.turn import INTERRUPTION, SECRETS

# What no log can tell: it is in the configuration, or on the machine.
OUTSIDE = ("rule", "project", "guard", "sandbox")
DRY = "[dry run: nothing was changed]\n"
F = TypeVar("F", bound=Fact)


class ServedClock:
    """Stands at the time of the fact that comes next."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._timer: asyncio.Timeout | None = None

    def now(self) -> int:
        events = self._tape.events
        return events[min(self._tape.at, len(events) - 1)].ts

    def ticks(self) -> float:
        return 0.0

    def elapsed(self, began: float, what: str) -> int:  # noqa: ARG002 - the recording knows
        for event in self._tape.ahead:
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

    def expire(self) -> None:
        if self._timer:
            self._timer.reschedule(asyncio.get_running_loop().time())

    async def sleep(self, seconds: float, what: str = "") -> None:  # noqa: ARG002 - the same
        if what:
            await self._tape.delivery(lambda event: sends(event.body, what))
        await asyncio.sleep(0)


class ServedPatience(Patience, frozen=True, kw_only=True):
    tape: Tape

    def wait(self, error: ProviderError, attempt: int) -> float | None:  # noqa: ARG002 - the recording knows
        failed = _first(self.tape, facts.ModelFailed)
        return failed.retry_ms / 1000 if failed and failed.retry_ms is not None else None


class ServedVeil(Veil):
    """Hides nothing: in a log no secret is. What is older than the veil went out as it was, or as it is hidden now."""

    def __init__(self, veil: Veil, tape: Tape) -> None:
        self._veil, self._tape = veil, tape

    def request(self, request: Request) -> Request:
        requested = _first(self._tape, facts.ModelRequested)
        if requested is None or requested.tail == prefix_digest(request.messages):
            return request
        hidden = self._veil.request(request)
        return hidden if requested.tail == prefix_digest(hidden.messages) else request


class ServedProvider:
    """Asks in the words of a real dialect; the answers are those of the recording."""

    def __init__(self, name: str, dialects: Sequence[Provider], tape: Tape) -> None:
        self.name, self._dialects, self._tape = name, tuple(dialects), tape

    def body(self, request: Request) -> bytes:
        """Services that mind an option are not sent it again: whichever way of saying it was used then is used."""
        _fail(self._tape)
        requested = _first(self._tape, facts.ModelRequested)
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

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002 - recorded
        event = await self._tape.reach(
            lambda event: isinstance(event.body, facts.ModelResponded | facts.ModelFailed) or _failing(self._tape)
        )
        _fail(self._tape)
        if isinstance(event.body, facts.ModelResponded):
            yield Text(event.body.text) if event.body.text else Reasoning("")
            yield self._reply(event.body)
            return
        assert isinstance(event.body, facts.ModelFailed)
        failed = event.body
        if failed.trouble.kind == "cancelled":
            yield Text(failed.partial) if failed.partial else Reasoning("")
            await self._tape.linger()
        if failed.partial:
            yield Text(failed.partial)
        error = ProviderError("bad_request", failed.trouble.message)
        # Whatever kind a newer version may have recorded.
        error.failure, error.trouble = failed.trouble.kind, failed.trouble  # pyright: ignore[reportAttributeAccessIssue]
        raise error

    def _reply(self, body: facts.ModelResponded) -> Reply:
        after = self._tape.at + 1
        called = [event.body for event in self._tape.events[after : after + body.calls]]
        calls = [
            ToolCall(each.call, each.name, each.arguments) for each in called if isinstance(each, facts.ToolCalled)
        ]
        # A fork may have left the last of them behind.
        calls += [ToolCall("", "", "")] * (body.calls - len(calls))
        return Reply(
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
        _fail(self._tape)
        wanted = (event.body for event in self._tape.ahead)
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


class ServedRoutes:
    """Whoever was asked then is asked again."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def model(self, role: str, summary: Summary) -> str:
        """Of whoever is asked next; the conversation's own follows from what was written before."""
        if role == MAIN:
            return summary.substitute or summary.model
        asked = (event.body for event in self._tape.ahead if isinstance(event.body, facts.ModelRequested))
        return next((body.model for body in asked if body.role == role), summary.model)

    def elsewhere(self, gateway: Gateway, request: Request, summary: Summary) -> Choice:  # noqa: ARG002 - it is known
        fell = self._tape.next.body if self._tape.next else None
        return Choice(fell.to, fell.passed) if isinstance(fell, facts.ModelFellBack) else Choice()


def tariff(tape: Tape, usage: Usage, info: ModelInfo) -> int | None:  # noqa: ARG001 - what it cost is written down
    responded = _first(tape, facts.ModelResponded)
    return responded.cost if responded else None


def names(tape: Tape, call: str) -> str:
    """The tools there were when one was called that was not among them."""
    said = [
        event.body.trouble
        for event in tape.ahead
        if isinstance(event.body, facts.ToolFinished) and event.body.call == call
    ]
    told = next((trouble.next[0] for trouble in said if trouble and trouble.next), "")
    return told.removeprefix("Known tools: ").removesuffix(".")


async def notes(tape: Tape, situation: Situation) -> list[Note]:  # noqa: ARG001 - they were made then
    """What the plugins had to say at this point."""
    _fail(tape)
    found: list[Note] = []
    for event in tape.ahead:
        match event.body:
            case facts.ContextAdded(topic=topic, text=text):
                found += [Note(topic, text)] if topic not in (INTERRUPTION, SECRETS) else []
            case facts.ModelRequested() | facts.TurnEnded() | facts.TurnStarted() | facts.TurnResumed():
                break
            case facts.CompactionMade() | facts.HistoryRewound():
                break
            case _:
                pass
    return found


class ServedTool(Struct, frozen=True):
    """One tool; each of its calls comes to what it came to then."""

    tool: Tool
    tape: Tape

    @property
    def value(self) -> Tool:
        tool = self.tool
        return replace(
            tool,
            run=self.run,
            judge=self.judge if tool.judge else None,
            preview=self.preview if tool.preview else None,
            foresee=self.foresee if tool.foresee else None,
            recover=self.recover if tool.recover else None,
        )

    async def run(self, args: Any, context: Context) -> Result:  # noqa: ARG002 - it has been done
        while True:
            event = await self.tape.reach(lambda event: _of(event, context.call) or _failing(self.tape))
            _fail(self.tape)
            match event.body:
                case facts.ToolFinished() as body:
                    return self._result(body)
                case FilesChanged():
                    return self._coming(context.call) or Result(text="")
                case facts.Asked():
                    with suppress(Refused):
                        await context.ask(self._questions(context.call))
                case DeliveryRecorded(title=title, text=text, urgency=urgency):
                    await context.post(Notice(title=title, text=text, urgency=urgency))
                case Fact() as body:
                    await context.emit(body)
                case _:
                    raise AssertionError("only facts are on a tape")

    def _questions(self, call: str) -> list[Question]:
        """All that the call asked before the first answer came."""
        found: list[Question] = []
        for event in self.tape.ahead:
            match event.body:
                case facts.Asked(question=text, choices=choices, free=free, call=of) if of == call:
                    found.append(Question(text=text, choices=choices, free=free))
                case facts.Asked() | facts.StateChanged():
                    continue
                case _:
                    break
        return found

    def judge(self, args: Any, context: Context) -> Judged:  # noqa: ARG002 - it has been judged
        self._sure_to_fail(context.call)
        match self._own(context.call):
            case facts.Asked(effect=effect, risk=risk, reach=reach) if effect and risk:
                return _judged(effect, risk, reach)
            case facts.ToolDecided(effect=effect, risk=risk, reach=reach):
                return _judged(effect, risk, reach)
            case _:
                # Nobody came to decide it: it was found again.
                return Judged(self.tool.effect, self.tool.risk)

    async def preview(self, args: Any, context: Context) -> str:  # noqa: ARG002 - it has been seen
        await self.tape.linger()
        match self._own(context.call):
            case facts.Asked(detail=detail, call=first) as asked:
                if self._later(asked):
                    raise ToolError("It could not be shown yet.")
                # That of several calls stands with the first of them.
                return detail if first == context.call else ""
            case facts.ToolFinished(dry=True) as body:
                return self._whole(body).removeprefix(DRY)
            case facts.ToolFinished(trouble=Trouble() as trouble):
                raise _ToolFailed(trouble)
            case _:
                return ""

    async def foresee(self, args: Any, context: Context) -> Mapping[str, str]:  # noqa: ARG002 - it has been foreseen
        await self.tape.linger()
        self._sure_to_fail(context.call)
        for event in self.tape.ahead:
            if isinstance(event.body, facts.ToolStarted) and event.body.call == context.call:
                return event.body.foreseen
        return {}

    async def recover(self, args: Any, context: Context) -> Result | None:  # noqa: ARG002 - it has been found out
        own = self._own(context.call)
        if isinstance(own, facts.ToolFinished) and own.trouble and own.trouble.kind == "cancelled" and cut_off(own):
            raise LeftOpen("It was cut off.")
        if not isinstance(own, facts.ToolFinished) or (own.trouble and own.trouble.kind == "no_effect"):
            return None
        event = await self.tape.reach(lambda event: _of(event, context.call))
        return self._result(event.body) if isinstance(event.body, facts.ToolFinished) else self._coming(context.call)

    def _coming(self, call: str) -> Result | None:
        """What a call will have come to; a fork may have left it behind."""
        own = self._own(call)
        return self._result(own) if isinstance(own, facts.ToolFinished) else None

    def _own(self, call: str) -> Fact | None:
        """The next fact about a call."""
        for event in self.tape.ahead:
            match event.body:
                case facts.ToolDecided(call=of) | facts.ToolFinished(call=of) if of == call:
                    return event.body
                case facts.Asked(kind="approval") as asked if about(asked, call):
                    return asked
                case facts.TurnEnded():
                    return None
                case _:
                    pass
        return None

    def _later(self, asked: facts.Asked) -> bool:
        """Whether other calls were seen to before it was asked about."""
        for event in self.tape.ahead:
            if event.body is asked:
                return False
            if isinstance(event.body, facts.ToolStarted | facts.ToolFinished):
                return True
        return False

    def _sure_to_fail(self, call: str) -> None:
        """A call that was neither decided nor started before it had a result failed at this very point."""
        own = self._own(call)
        if isinstance(own, facts.ToolFinished) and own.trouble and not cut_off(own) and not self._started(call):
            raise _ToolFailed(own.trouble)

    def _started(self, call: str) -> bool:
        for at in range(self.tape.at - 1, -1, -1):
            match self.tape.events[at].body:
                case facts.ToolStarted(call=of) if of == call:
                    return True
                case facts.ToolCalled(call=of) if of == call:
                    return False
                case _:
                    pass
        return False

    def _result(self, body: facts.ToolFinished) -> Result:
        return Result(
            text=self._whole(body),
            ok=body.ok,
            exit=body.exit,
            trouble=body.trouble,
            dry=body.dry,
            images=tuple(
                Picture(data=self.tape.blobs.get(image.digest, b""), media=image.media, name=image.name)
                for image in body.images
            ),
        )

    def _whole(self, body: facts.ToolFinished) -> str:
        kept = self.tape.blobs.get(body.whole) if body.whole else None
        return body.output if kept is None else kept.decode("utf-8", "replace")


class _ToolFailed(ToolError):
    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class Failed(SylphError):
    """What made a turn fail then, and does again."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def arbiter(tape: Tape, call: str, case: Case) -> Ruling:
    """What was decided then, where that came from outside of the log: from rules, protected places, the sandbox."""
    for event in tape.ahead:
        match event.body:
            case facts.Asked(kind="approval") as asked if about(asked, call):
                return Ruling("ask", "a person was asked", "log")
            case facts.ToolDecided(call=of, decision=decision, reason=reason, by=by) if of == call:
                return Ruling(decision, reason, by) if by in OUTSIDE else decide(case)
            case facts.ToolFinished(call=of) if of == call:
                break
            case _:
                pass
    return decide(case)


def about(asked: facts.Asked, call: str) -> bool:
    """Whether an approval is about a call."""
    return call == asked.call or call in asked.calls


def _judged(effect: Effect, risk: Risk, reach: Reach) -> Judged:
    return Judged(
        effect, risk, reach.why, reach.reads, reach.writes, reach.hosts, reach.commands, outside=reach.outside
    )


def _failing(tape: Tape) -> bool:
    """Whether the next fact says that something had failed which no fact tells of."""
    after = next((event.body for event in tape.ahead if not cut_off(event.body) and not sent(event.body)), None)
    if not isinstance(after, facts.StateChanged):
        return False
    ended = _first(tape, facts.TurnEnded)
    mended = after.event == "mend" and not tape.brought
    return mended or (after.event == "finish" and ended is not None and ended.outcome == "failed")


def _fail(tape: Tape) -> None:
    """Fails, if this is where it failed."""
    if _failing(tape):
        ended = _first(tape, facts.TurnEnded)
        raise Failed((ended and ended.trouble) or Trouble("bug", "It failed for reasons that were not recorded."))


def _first(tape: Tape, kind: type[F]) -> F | None:
    """The next fact of one kind."""
    return next((event.body for event in tape.ahead if isinstance(event.body, kind)), None)


def _of(event: Event, call: str) -> bool:
    """Whether a fact comes from the run of a call."""
    match event.body:
        case facts.ToolFinished(call=of) as body:
            return of == call and not cut_off(body)
        case FilesChanged(call=of):
            return of == call
        case facts.Asked(call=of, kind=kind):
            return of == call and kind == "question"
        case DeliveryRecorded(call=of):
            return of == call
        case facts.PlanUpdated() | Carried():
            return True
        case _:
            return False
