"""The world as it was: models, tools, notes, time and prices that answer from a recording."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sylph.core import facts
from sylph.core.errors import CallRefused, ErrorReport, SylphError, ToolError
from sylph.core.events import Event, Fact, UnreadableRecord
from sylph.core.facts.delivery import DeliveryRecorded, Notification
from sylph.core.facts.file_change import FilesChanged
from sylph.core.permission.types import AccessSummary, Effect, Risk
from sylph.core.plugin import ContextNote, PrepareContext
from sylph.core.tool import CallAssessment, ImageData, Tool, ToolContext, ToolResult, UserQuestion
from sylph.engine.calls.interrupted_calls import CallLeftOpen, is_interrupted_result
from sylph.engine.calls.policy import PolicyDecision, PolicyInput, evaluate_policy
from sylph.engine.turn.agent_loop import INTERRUPTION, SECRETS
from sylph.replay.external_facts import is_outbox_fact
from sylph.replay.playback import Playback

# What no log can tell: it is in the configuration, or on the machine.
EXTERNAL_DECIDERS = ("rule", "project", "guard", "sandbox")
DRY_RUN_PREFIX = "[dry run: nothing was changed]\n"
F = TypeVar("F", bound=Fact)


def recorded_tool_names(playback: Playback, call: str) -> str:
    """The tools there were when one was called that was not among them."""
    said = [
        event.body.trouble
        for event in playback.upcoming
        if isinstance(event.body, facts.ToolFinished) and event.body.call == call
    ]
    told = next((trouble.next[0] for trouble in said if trouble and trouble.next), "")
    return told.removeprefix("Known tools: ").removesuffix(".")


async def recorded_notes(playback: Playback, situation: PrepareContext) -> list[ContextNote]:  # noqa: ARG001 - they were made then
    """What the plugins had to say at this point."""
    raise_if_failing(playback)
    found: list[ContextNote] = []
    for event in playback.upcoming:
        match event.body:
            case facts.ContextAdded(topic=topic, text=text):
                found += [ContextNote(topic, text)] if topic not in (INTERRUPTION, SECRETS) else []
            case facts.ModelRequested() | facts.TurnEnded() | facts.TurnStarted() | facts.TurnResumed():
                break
            case facts.CompactionMade() | facts.HistoryRewound():
                break
            case _:
                pass
    return found


class RecordedTool(Struct, frozen=True):
    """One tool; each of its calls comes to what it came to then."""

    tool: Tool
    playback: Playback

    @property
    def as_tool(self) -> Tool:
        tool = self.tool
        return replace(
            tool,
            run=self.run,
            judge=self.judge if tool.judge else None,
            preview=self.preview if tool.preview else None,
            foresee=self.foresee if tool.foresee else None,
            recover=self.recover if tool.recover else None,
        )

    async def run(self, args: Any, context: ToolContext) -> ToolResult:  # noqa: ARG002 - it has been done
        while True:
            event = await self.playback.wait_for_fact(
                lambda event: _comes_from_call(event, context.call) or is_failing(self.playback)
            )
            raise_if_failing(self.playback)
            match event.body:
                case facts.ToolFinished() as body:
                    return self._build_result(body)
                case FilesChanged():
                    return self._upcoming_result(context.call) or ToolResult(text="")
                case facts.Asked():
                    with suppress(CallRefused):
                        await context.ask(self._recorded_questions(context.call))
                case DeliveryRecorded(title=title, text=text, urgency=urgency):
                    await context.notify(Notification(title=title, text=text, urgency=urgency))
                case Fact() as body:
                    await context.emit(body)
                case _:
                    raise AssertionError("only facts are on a tape")

    def _recorded_questions(self, call: str) -> list[UserQuestion]:
        """All that the call asked before the first answer came."""
        found: list[UserQuestion] = []
        for event in self.playback.upcoming:
            match event.body:
                case facts.Asked(question=text, choices=choices, free=free, call=of) if of == call:
                    found.append(UserQuestion(text=text, choices=choices, free=free))
                case facts.Asked() | facts.StateChanged():
                    continue
                case _:
                    break
        return found

    def judge(self, args: Any, context: ToolContext) -> CallAssessment:  # noqa: ARG002 - it has been judged
        self._raise_recorded_failure(context.call)
        match self._next_fact(context.call):
            case facts.Asked(effect=effect, risk=risk, reach=reach) if effect and risk:
                return _recorded_assessment(effect, risk, reach)
            case facts.ToolDecided(effect=effect, risk=risk, reach=reach):
                return _recorded_assessment(effect, risk, reach)
            case _:
                # Nobody came to decide it: it was found again.
                return CallAssessment(self.tool.effect, self.tool.risk)

    async def preview(self, args: Any, context: ToolContext) -> str:  # noqa: ARG002 - it has been seen
        await self.playback.wait_for_external()
        match self._next_fact(context.call):
            case facts.Asked(detail=detail, call=first) as asked:
                if self._was_asked_later(asked):
                    raise ToolError("It could not be shown yet.")
                # That of several calls stands with the first of them.
                return detail if first == context.call else ""
            case facts.ToolFinished(dry=True) as body:
                return self._full_output(body).removeprefix(DRY_RUN_PREFIX)
            case facts.ToolFinished(trouble=ErrorReport() as trouble):
                raise _RecordedToolError(trouble)
            case _:
                return ""

    async def foresee(self, args: Any, context: ToolContext) -> Mapping[str, str]:  # noqa: ARG002 - it has been foreseen
        await self.playback.wait_for_external()
        self._raise_recorded_failure(context.call)
        for event in self.playback.upcoming:
            if isinstance(event.body, facts.ToolStarted) and event.body.call == context.call:
                return event.body.foreseen
        return {}

    async def recover(self, args: Any, context: ToolContext) -> ToolResult | None:  # noqa: ARG002 - it has been found out
        own = self._next_fact(context.call)
        if (
            isinstance(own, facts.ToolFinished)
            and own.trouble
            and own.trouble.kind == "cancelled"
            and is_interrupted_result(own)
        ):
            raise CallLeftOpen("It was cut off.")
        if not isinstance(own, facts.ToolFinished) or (own.trouble and own.trouble.kind == "no_effect"):
            return None
        event = await self.playback.wait_for_fact(lambda event: _comes_from_call(event, context.call))
        return (
            self._build_result(event.body)
            if isinstance(event.body, facts.ToolFinished)
            else self._upcoming_result(context.call)
        )

    def _upcoming_result(self, call: str) -> ToolResult | None:
        """What a call will have come to; a fork may have left it behind."""
        own = self._next_fact(call)
        return self._build_result(own) if isinstance(own, facts.ToolFinished) else None

    def _next_fact(self, call: str) -> Fact | None:
        """The next fact about a call."""
        for event in self.playback.upcoming:
            match event.body:
                case facts.ToolDecided(call=of) | facts.ToolFinished(call=of) if of == call:
                    return event.body
                case facts.Asked(kind="approval") as asked if concerns_call(asked, call):
                    return asked
                case facts.TurnEnded():
                    return None
                case _:
                    pass
        return None

    def _was_asked_later(self, asked: facts.Asked) -> bool:
        """Whether other calls were seen to before it was asked about."""
        for event in self.playback.upcoming:
            if event.body is asked:
                return False
            if isinstance(event.body, facts.ToolStarted | facts.ToolFinished):
                return True
        return False

    def _raise_recorded_failure(self, call: str) -> None:
        """A call that was neither decided nor started before it had a result failed at this very point."""
        own = self._next_fact(call)
        if (
            isinstance(own, facts.ToolFinished)
            and own.trouble
            and not is_interrupted_result(own)
            and not self._was_started(call)
        ):
            raise _RecordedToolError(own.trouble)

    def _was_started(self, call: str) -> bool:
        for at in range(self.playback.at - 1, -1, -1):
            match self.playback.events[at].body:
                case facts.ToolStarted(call=of) if of == call:
                    return True
                case facts.ToolCalled(call=of) if of == call:
                    return False
                case _:
                    pass
        return False

    def _build_result(self, body: facts.ToolFinished) -> ToolResult:
        return ToolResult(
            text=self._full_output(body),
            ok=body.ok,
            exit=body.exit,
            trouble=body.trouble,
            dry=body.dry,
            images=tuple(
                ImageData(data=self.playback.blobs.get(image.digest, b""), media=image.media, name=image.name)
                for image in body.images
            ),
        )

    def _full_output(self, body: facts.ToolFinished) -> str:
        kept = self.playback.blobs.get(body.whole) if body.whole else None
        return body.output if kept is None else kept.decode("utf-8", "replace")


class _RecordedToolError(ToolError):
    def __init__(self, trouble: ErrorReport) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class RecordedFailure(SylphError):
    """What made a turn fail then, and does again."""

    def __init__(self, trouble: ErrorReport) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def recorded_decision(playback: Playback, call: str, case: PolicyInput) -> PolicyDecision:
    """What was decided then, where that came from outside of the log: from rules, protected places, the sandbox."""
    for event in playback.upcoming:
        match event.body:
            case facts.Asked(kind="approval") as asked if concerns_call(asked, call):
                return PolicyDecision("ask", "a person was asked", "log")
            case facts.ToolDecided(call=of, decision=decision, reason=reason, by=by) if of == call:
                return PolicyDecision(decision, reason, by) if by in EXTERNAL_DECIDERS else evaluate_policy(case)
            case facts.ToolFinished(call=of) if of == call:
                break
            case _:
                pass
    return evaluate_policy(case)


def concerns_call(asked: facts.Asked, call: str) -> bool:
    """Whether an approval is about a call."""
    return call == asked.call or call in asked.calls


def _recorded_assessment(effect: Effect, risk: Risk, reach: AccessSummary) -> CallAssessment:
    return CallAssessment(
        effect, risk, reach.why, reach.reads, reach.writes, reach.hosts, reach.commands, outside=reach.outside
    )


def is_failing(playback: Playback) -> bool:
    """Whether the next fact says that something had failed which no fact tells of."""
    after = next(
        (
            event.body
            for event in playback.upcoming
            if not is_interrupted_result(event.body) and not is_outbox_fact(event.body)
        ),
        None,
    )
    if not isinstance(after, facts.StateChanged):
        return False
    ended = next_of_kind(playback, facts.TurnEnded)
    mended = after.event == "mend" and not playback.next_is_external
    return mended or (after.event == "finish" and ended is not None and ended.outcome == "failed")


def raise_if_failing(playback: Playback) -> None:
    """Fails, if this is where it failed."""
    if is_failing(playback):
        ended = next_of_kind(playback, facts.TurnEnded)
        raise RecordedFailure(
            (ended and ended.trouble) or ErrorReport("bug", "It failed for reasons that were not recorded.")
        )


def next_of_kind(playback: Playback, kind: type[F]) -> F | None:
    """The next fact of one kind."""
    return next((event.body for event in playback.upcoming if isinstance(event.body, kind)), None)


def _comes_from_call(event: Event, call: str) -> bool:
    """Whether a fact comes from the run of a call."""
    match event.body:
        case facts.ToolFinished(call=of) as body:
            return of == call and not is_interrupted_result(body)
        case FilesChanged(call=of):
            return of == call
        case facts.Asked(call=of, kind=kind):
            return of == call and kind == "question"
        case DeliveryRecorded(call=of):
            return of == call
        case facts.PlanUpdated() | UnreadableRecord():
            return True
        case _:
            return False
