"""A turn as it is told to somebody who watches: events in, what to show out. Pure; each door shows it its own way."""

from msgspec import Struct
from msgspec.structs import replace

from sylph.core import facts, signals
from sylph.core.errors import ErrorReport
from sylph.core.events import Event
from sylph.core.facts import budget, delivery
from sylph.core.facts.file_change import FilesChanged
from sylph.core.facts.turn import TurnOutcome
from sylph.core.messages import Usage
from sylph.core.permission.rule_text import describe_rule as rule_told
from sylph.core.text import window_usage
from sylph.core.text.formatting import count_noun, strip_full_stop
from sylph.engine.folds.session_state import SessionState
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.redact.stream import StreamRestorer
from sylph.interfaces.text.file_changes import undo_gap_lines
from sylph.interfaces.text.render import (
    StyledLine,
    TextStyle,
    call_result_line,
    call_title,
    dry_run_lines,
    dry_run_title,
    edit_lines,
    error_lines,
    format_duration,
    format_usage,
    one_line,
    plan_lines,
    styled_line,
)
from sylph.interfaces.text.sanitize import sanitize_text
from sylph.providers.local.models import NAME, SMALL

# Calls that show themselves in another way: as the plan, as a question.
SILENT_TOOLS = frozenset({"plan", "ask_user", "notify"})
CUT_OFF = "! the answer was cut off at the model's length limit (say: go on)"
EMPTY_ANSWER = "! the model said nothing"
DRY_RUN_NOTE = "dry run: nothing was changed"
UNCOVERED = "! not covered by undo:"
CHAT_ONLY = "chat only, no tools"


class AnswerChunk(Struct, frozen=True):
    """The next piece of the answer, while it is written."""

    text: str


class ChunksLost(Struct, frozen=True):
    """Pieces were lost on the way; the whole text makes them good."""


class StreamBroken(Struct, frozen=True):
    """Nothing more comes from whoever told the turn: what was being written comes anew, if at all."""


class AnswerText(Struct, frozen=True):
    """A whole text of the model. `final` when no call follows: then it is the answer."""

    text: str
    final: bool


class CallBegan(Struct, frozen=True):
    """A call runs."""

    call: str
    title: str


class CallEnded(Struct, frozen=True):
    """A call is over. `more` is what it changed."""

    call: str
    title: str
    mark: StyledLine
    more: tuple[StyledLine, ...] = ()


class NoticeShown(Struct, frozen=True):
    """Something worth a line of its own. What belongs to the answer is shown `always`."""

    lines: tuple[StyledLine, ...]
    always: bool = False


class BellRang(Struct, frozen=True):
    """Somebody who may look elsewhere is called."""


class BusyChanged(Struct, frozen=True):
    """What is being waited for; with `ms`, for how long."""

    label: str
    ms: int = 0


class TurnConcluded(Struct, frozen=True):
    """The turn is over. Where it failed, `hint` is what to type to try again."""

    outcome: TurnOutcome
    trouble: ErrorReport | None
    sums: str
    hint: str = ""


DisplayEvent = (
    AnswerChunk
    | ChunksLost
    | StreamBroken
    | AnswerText
    | CallBegan
    | CallEnded
    | NoticeShown
    | BellRang
    | BusyChanged
    | TurnConcluded
)


class RetryHints(Struct, frozen=True):
    """What to type after a turn that failed, and after one that ran out of rounds, at this door."""

    failed: str = ""
    budget: str = ""

    def for_outcome(self, outcome: TurnOutcome, session: str) -> str:
        said = {"failed": self.failed, "interrupted": self.failed, "budget": self.budget}.get(outcome, "")
        return said.replace("SESSION", session)


TASK_HINTS = RetryHints(failed="sylph retry SESSION", budget='sylph -s SESSION "go on"')
CHAT_HINTS = RetryHints(failed="/retry")


class TurnPresenter:
    """Knows what was said before, so that a result finds its call and a turn its sums."""

    def __init__(
        self, hints: RetryHints | None = None, redactor: NoRedaction | None = None, *, gaps: bool = True
    ) -> None:
        self._gaps: dict[str, None] | None = {} if gaps else None
        self._redactor = redactor or NoRedaction()
        self._answer, self._begun = StreamRestorer(self._redactor), False
        self.calls: dict[str, facts.ToolCalled] = {}
        self.inputs: dict[str, facts.InputReceived] = {}
        self._hints = hints or RetryHints()
        self._usage = Usage()
        self._cost: int | None = None
        self._dry = False
        self._chats = ""
        self._window = 0
        self._level: window_usage.WindowLevel = ""

    def start_from(self, summary: SessionState) -> None:
        """Takes up the story where the session stands."""
        self._dry = summary.dry_run
        self._level = window_usage.window_level(summary.context_tokens, summary.window)
        for call, open_call in summary.open_calls.items():
            self.calls[call] = facts.ToolCalled(call=call, name=open_call.name, arguments=open_call.arguments)
        for id, text in summary.queue.items():
            self.inputs[id] = facts.InputReceived(id=id, text=text, dry_run=id in summary.dry_inputs)

    def break_stream(self) -> StreamBroken:
        self._answer, self._begun = StreamRestorer(self._redactor), False
        return StreamBroken()

    def present_event(self, event: Event) -> tuple[DisplayEvent, ...]:  # noqa: C901, PLR0911, PLR0912 - one flat table
        """What this event adds to the picture."""
        if isinstance(event.body, facts.ModelRequested) and event.body.role == "main":
            self._window = event.body.window
        match event.body:
            case signals.TextDelta(text=text):
                return self._present_chunk(text)
            case signals.LiveSnapshot(text=text):
                # For who comes late; who has some of it waits for the rest.
                return self._present_chunk(text) if text and not self._begun else present_standalone(event)
            case facts.ModelResponded() as body:
                return self._present_answer(body)
            case facts.ToolDecided(call=call, arguments=arguments) if arguments and call in self.calls:
                # From here on it is what the person made of it.
                self.calls[call] = replace(self.calls[call], arguments=arguments)
                return ()
            case facts.ToolCalled() | facts.ToolStarted() | facts.ToolFinished() | signals.ToolOutput():
                return self._present_call(event)
            case facts.ModelFailed(usage=Usage() as usage, cost=most) as body:
                self._add_usage(*((usage, most) if not body.turn else (Usage(), None)))
                return (*present_standalone(event), *_present_guessed_charge(body))
            case facts.TurnStarted(input=input):
                self._usage, self._cost = Usage(), None
                self._dry = input in self.inputs and self.inputs[input].dry_run
                return ()
            case FilesChanged(gaps=gaps) if self._gaps is not None:
                self._gaps |= dict.fromkeys(map(self._redactor.restore_text, gaps))
                return ()
            case facts.TurnEnded() as body:
                return self._present_end(body, event.session)
            case facts.InputReceived(id=id) as body:
                self.inputs[id] = body
                return ()
            case facts.ModelRequested(role="main", model=model, chat_only=True) if model != self._chats:
                # Once for each model: who asks for work must know why none is done.
                self._chats = model
                return (*_notice(f"{one_line(model)}: {chat_only_notice(model)}", "warn"), *present_standalone(event))
            case facts.InputDelivered(id=id):
                return _notice(f"↳ heard: {one_line(self.message_text(id))}")
            case _:
                return present_standalone(event)

    def _present_chunk(self, text: str) -> tuple[DisplayEvent, ...]:
        self._begun = True
        shown = self._answer.restore_piece(text)
        return (AnswerChunk(shown),) if shown else ()

    def message_text(self, input: str) -> str:
        """The words of a message."""
        return self.inputs[input].text if input in self.inputs else ""

    def _present_answer(self, body: facts.ModelResponded) -> tuple[DisplayEvent, ...]:
        self._add_usage(body.usage, body.cost)
        if body.role != "main":
            return ()
        # The person reads what the model could not.
        said = AnswerText(self._redactor.restore_text(body.text), final=body.calls == 0)
        self._answer, self._begun = StreamRestorer(self._redactor), False
        filling = self._present_context_level(body.usage)
        if body.calls:
            return (said, *filling)
        if body.finish == "length":
            return (said, NoticeShown((styled_line(CUT_OFF, "warn"),), always=True))
        return (
            (said, *filling)
            if body.text.strip()
            else (said, NoticeShown((styled_line(EMPTY_ANSWER, "warn"),), always=True))
        )

    def _present_context_level(self, usage: Usage) -> tuple[DisplayEvent, ...]:
        """A word on the window, once for each step that it fills up."""
        if not usage.input:
            return ()
        used, before = usage.input + usage.output, self._level
        self._level = window_usage.window_level(used, self._window)
        if window_usage.level_rank(self._level) <= window_usage.level_rank(before):
            return ()
        full = f"context {window_usage.window_percent(used, self._window)} % of {self._window:,} tokens ({self._level})"
        return _notice(
            f"{full}: {window_usage.LEVEL_MESSAGES[self._level]}", "dim" if self._level == "advisory" else "warn"
        )

    def _add_usage(self, usage: Usage, cost: int | None) -> None:
        self._usage = self._usage + usage
        if cost is not None:
            self._cost = (self._cost or 0) + cost

    def _present_call(self, event: Event) -> tuple[DisplayEvent, ...]:
        match event.body:
            case facts.ToolCalled(call=call) as body:
                self.calls[call] = body
                return ()
            case facts.ToolStarted(call=call, effect=effect):
                silent = self._tool_name(call) in SILENT_TOOLS
                return () if silent else (CallBegan(call, self._call_title(call, dry=self._dry and effect != "read")),)
            case signals.ToolOutput(text=text):
                last = next((row for row in reversed(text.splitlines()) if row.strip()), "")
                return (BusyChanged(one_line(last, 60)),) if last else ()
            case facts.ToolFinished(call=call, ok=ok) as body:
                if ok and self._tool_name(call) in SILENT_TOOLS:
                    return ()
                return (
                    CallEnded(
                        call, self._call_title(call, dry=body.dry), call_result_line(body), self._changed_lines(body)
                    ),
                )
            case _:
                return ()

    def _changed_lines(self, body: facts.ToolFinished) -> tuple[StyledLine, ...]:
        called = self.calls.get(body.call)
        if body.dry:
            return tuple(dry_run_lines(body.output))
        return tuple(edit_lines(called.arguments)) if body.ok and called else ()

    def _tool_name(self, call: str) -> str:
        return self.calls[call].name if call in self.calls else "call"

    def _call_title(self, call: str, *, dry: bool = False) -> str:
        called = self.calls.get(call)
        if called is None:
            return call
        return (dry_run_title if dry else call_title)(called.name, called.arguments)

    def _present_end(self, body: facts.TurnEnded, session: str) -> tuple[DisplayEvent, ...]:
        sums = " · ".join(
            filter(
                None,
                [count_noun(body.rounds, "round"), format_usage(self._usage, self._cost), format_duration(body.ms)],
            )
        )
        # What to do about a budget stands in the trouble itself.
        capped = body.trouble is not None and "scope" in body.trouble.details
        hint = "" if capped else self._hints.for_outcome(body.outcome, session)
        ended = TurnConcluded(body.outcome, body.trouble, sums, hint)
        return (*self._present_undo_gaps(), *(_notice(DRY_RUN_NOTE, "warn") if self._dry else ()), ended)

    def _present_undo_gaps(self) -> tuple[DisplayEvent, ...]:
        """What the turn changed that an undo will not bring back."""
        gaps, self._gaps = self._gaps, None if self._gaps is None else {}
        return (NoticeShown((styled_line(UNCOVERED, "warn"), *undo_gap_lines(gaps))),) if gaps else ()


def chat_only_notice(model: str) -> str:
    """What is said of a model that gets no tools."""
    return f"small model, {CHAT_ONLY}" if model == f"{NAME}/{SMALL}" else CHAT_ONLY


def turn_end_lines(ended: TurnConcluded) -> list[StyledLine]:
    """Why a turn did not finish. That somebody stopped it is no error."""
    if ended.outcome == "cancelled":
        return [styled_line("stopped", "warn")]
    if ended.trouble is None:
        return []
    return [*error_lines(ended.trouble), *([styled_line(f"  → {ended.hint}", "dim")] if ended.hint else [])]


def present_standalone(event: Event) -> tuple[DisplayEvent, ...]:  # noqa: C901, PLR0911, PLR0912 - one flat table
    """What an event shows by itself, whatever came before."""
    match event.body:
        case facts.ModelRequested(role="main", model=model):
            return (BusyChanged(f"waiting for {one_line(model)}"),)
        case signals.ReasoningDelta():
            return (BusyChanged("thinking"),)
        case signals.ArgsDelta(name=name):
            return (BusyChanged(f"writing {one_line(name)}"),)
        case signals.Progress(text=text) | signals.LiveSnapshot(progress=text) if text:
            return (BusyChanged(one_line(text)),)
        case signals.Lagged():
            return (ChunksLost(),)
        case facts.ModelFailed() as body:
            return _present_failure(body)
        case facts.ModelFellBack() as body:
            return _present_fallback(body)
        case facts.PlanUpdated(steps=steps):
            return (NoticeShown(tuple(plan_lines(steps))),)
        case facts.StateChanged(to="compacting"):
            return (BusyChanged("summarising what was said"),)
        case facts.CompactionMade(tokens_before=before, tokens_after=after):
            return _notice(f"summarised: {before:,} → {after:,} tokens; the log keeps everything")
        case facts.CompactionFailed(trouble=trouble):
            return _notice(f"summarising failed, nothing was dropped: {one_line(trouble.message)}", "warn")
        case facts.TurnResumed(attempt=attempt):
            return _notice(f"going on with an interrupted turn (attempt {attempt})", "warn")
        case facts.SessionMode(mode=mode):
            return _notice(f"mode is now {mode} for this session")
        case facts.SessionModel(model=model):
            return _notice(f"model is now {one_line(model)} for this session")
        case facts.SessionRole(role=role, model=model):
            return _notice(f"{one_line(role)} is now {one_line(model) or 'as configured'} for this session")
        case facts.GrantRevoked(rule=rule):
            return _notice(f"not allowed for this session any more: {one_line(rule_told(rule))}")
        case facts.StateChanged(to="paused"):
            return _notice("paused")
        case budget.SessionBudget() | budget.BudgetWarned() | budget.BudgetExceeded():
            return _present_budget(event.body)
        case _:
            return _present_delivery(event)


def _present_budget(
    body: budget.SessionBudget | budget.BudgetWarned | budget.BudgetExceeded,
) -> tuple[DisplayEvent, ...]:
    match body:
        case budget.SessionBudget(money=None):
            return _notice("this session has no budget of its own any more")
        case budget.SessionBudget(money=int() as money):
            return _notice(f"budget of this session: {budget.format_dollars(money)}")
        case budget.BudgetWarned(scope=scope, name=name, what=what, used=used, cap=cap):
            said = f"{used * 100 // cap} % of the budget of {budget.describe_scope(scope, one_line(name))} is used"
            return _notice(f"! {said}: {budget.format_share(what, used, cap)}", "warn")
        case budget.BudgetExceeded(model=model, what=what, reserved=reserved, used=used):
            said = f"! an answer of {one_line(model)} took {budget.format_amount(what, used)}"
            return _notice(f"{said}; {budget.format_amount(what, reserved)} at the most was foreseen", "warn")
        case _:
            return ()


def _present_guessed_charge(body: facts.ModelFailed) -> tuple[DisplayEvent, ...]:
    most = budget.format_dollars(body.cost) if body.cost is not None else "its tokens"
    call = "a call of an earlier turn" if body.turn else "that call"
    return _notice(f"{call} may have been charged: {most} counted, the most it can have been", "warn")


def _present_delivery(event: Event) -> tuple[DisplayEvent, ...]:
    match event.body:
        case delivery.DeliveryRecorded(channel=delivery.DOOR_CHANNEL) as body:
            rows = [
                styled_line(f"◆ {one_line(body.title, 200)}", "bold"),
                *(styled_line(f"  {row}") for row in sanitize_text(body.text).splitlines()),
            ]
            # What a question or an end is about stands there anyway.
            shown = (NoticeShown(tuple(rows), always=True),) if body.why == "notify" else ()
            return shown if body.urgency == "low" else (*shown, BellRang())
        case delivery.DeliveryFailed(id=id, trouble=trouble, retry_ms=pause):
            again = "it is given up" if pause is None else f"trying again in {format_duration(pause)}"
            return _notice(
                f"! not delivered by {id.rpartition('.')[2]}: "
                f"{strip_full_stop(one_line(trouble.message, 200))}; {again}",
                "warn",
            )
        case _:
            return ()


def _present_failure(body: facts.ModelFailed) -> tuple[DisplayEvent, ...]:
    if body.retry_ms is None:
        return ()
    said = f"! {strip_full_stop(one_line(body.trouble.message, 200))}; trying again in {format_duration(body.retry_ms)}"
    return (NoticeShown((styled_line(said, "warn"),)), BusyChanged("next try", body.retry_ms))


def _present_fallback(body: facts.ModelFellBack) -> tuple[DisplayEvent, ...]:
    then = f"{one_line(body.to)} takes over for this turn" if body.to else "nobody can take over"
    said = f"! {one_line(body.model)} did not answer ({strip_full_stop(one_line(body.trouble.message, 200))}); {then}"
    passed = [f"  {one_line(model)} was passed over: {one_line(why)}" for model, why in body.passed.items()]
    return (NoticeShown((styled_line(said, "warn"), *(styled_line(row, "dim") for row in passed)), always=True),)


def _notice(text: str, style: TextStyle = "dim") -> tuple[DisplayEvent, ...]:
    return (NoticeShown((styled_line(text, style),)),)
