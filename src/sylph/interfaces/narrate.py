"""A turn as it is told to somebody who watches: events in, what to show out. Pure; each door shows it its own way."""

from msgspec import Struct
from msgspec.structs import replace

from sylph.core import budget, deliveries, facts, gauge, signals
from sylph.core.changes import FilesChanged
from sylph.core.errors import Trouble
from sylph.core.events import Event
from sylph.core.messages import Usage
from sylph.core.rule_words import told as rule_told
from sylph.core.text import clause, count
from sylph.engine.redact.stream import Revealed
from sylph.engine.redact.veil import Veil
from sylph.engine.summary import Summary
from sylph.interfaces.changes import gap_lines
from sylph.interfaces.clean import clean
from sylph.interfaces.render import (
    Line,
    Style,
    call_mark,
    call_title,
    change_lines,
    dry_lines,
    dry_title,
    flat,
    line,
    plan_lines,
    spent,
    took,
    trouble_lines,
)
from sylph.providers.local.models import NAME, SMALL

# Calls that show themselves in another way: as the plan, as a question.
SILENT = frozenset({"plan", "ask_user", "notify"})
CUT_OFF = "! the answer was cut off at the model's length limit (say: go on)"
NOTHING = "! the model said nothing"
DRY = "dry run: nothing was changed"
UNCOVERED = "! not covered by undo:"
CHAT_ONLY = "chat only, no tools"


class Piece(Struct, frozen=True):
    """The next piece of the answer, while it is written."""

    text: str


class Lost(Struct, frozen=True):
    """Pieces were lost on the way; the whole text makes them good."""


class Broke(Struct, frozen=True):
    """Nothing more comes from whoever told the turn: what was being written comes anew, if at all."""


class Said(Struct, frozen=True):
    """A whole text of the model. `final` when no call follows: then it is the answer."""

    text: str
    final: bool


class Began(Struct, frozen=True):
    """A call runs."""

    call: str
    title: str


class Done(Struct, frozen=True):
    """A call is over. `more` is what it changed."""

    call: str
    title: str
    mark: Line
    more: tuple[Line, ...] = ()


class Shown(Struct, frozen=True):
    """Something worth a line of its own. What belongs to the answer is shown `always`."""

    lines: tuple[Line, ...]
    always: bool = False


class Rang(Struct, frozen=True):
    """Somebody who may look elsewhere is called."""


class Busy(Struct, frozen=True):
    """What is being waited for; with `ms`, for how long."""

    label: str
    ms: int = 0


class Ended(Struct, frozen=True):
    """The turn is over. Where it failed, `hint` is what to type to try again."""

    outcome: facts.Outcome
    trouble: Trouble | None
    sums: str
    hint: str = ""


Act = Piece | Lost | Broke | Said | Began | Done | Shown | Rang | Busy | Ended


class Hints(Struct, frozen=True):
    """What to type after a turn that failed, and after one that ran out of rounds, at this door."""

    failed: str = ""
    budget: str = ""

    def of(self, outcome: facts.Outcome, session: str) -> str:
        said = {"failed": self.failed, "interrupted": self.failed, "budget": self.budget}.get(outcome, "")
        return said.replace("SESSION", session)


TASK = Hints(failed="sylph retry SESSION", budget='sylph -s SESSION "go on"')
CHAT = Hints(failed="/retry")


class Narrator:
    """Knows what was said before, so that a result finds its call and a turn its sums."""

    def __init__(self, hints: Hints | None = None, veil: Veil | None = None, *, gaps: bool = True) -> None:
        self._gaps: dict[str, None] | None = {} if gaps else None
        self._veil = veil or Veil()
        self._answer, self._begun = Revealed(self._veil), False
        self.calls: dict[str, facts.ToolCalled] = {}
        self.inputs: dict[str, facts.InputReceived] = {}
        self._hints = hints or Hints()
        self._usage = Usage()
        self._cost: int | None = None
        self._dry = False
        self._chats = ""
        self._window = 0
        self._level: gauge.Level = ""

    def begin(self, summary: Summary) -> None:
        """Takes up the story where the session stands."""
        self._dry = summary.dry_run
        self._level = gauge.level(summary.context_tokens, summary.window)
        for call, open_call in summary.open_calls.items():
            self.calls[call] = facts.ToolCalled(call=call, name=open_call.name, arguments=open_call.arguments)
        for id, text in summary.queue.items():
            self.inputs[id] = facts.InputReceived(id=id, text=text, dry_run=id in summary.dry_inputs)

    def broke(self) -> Broke:
        self._answer, self._begun = Revealed(self._veil), False
        return Broke()

    def see(self, event: Event) -> tuple[Act, ...]:  # noqa: C901, PLR0911, PLR0912 - one flat table
        """What this event adds to the picture."""
        if isinstance(event.body, facts.ModelRequested) and event.body.role == "main":
            self._window = event.body.window
        match event.body:
            case signals.TextDelta(text=text):
                return self._piece(text)
            case signals.Live(text=text):
                # For who comes late; who has some of it waits for the rest.
                return self._piece(text) if text and not self._begun else passing(event)
            case facts.ModelResponded() as body:
                return self._responded(body)
            case facts.ToolDecided(call=call, arguments=arguments) if arguments and call in self.calls:
                # From here on it is what the person made of it.
                self.calls[call] = replace(self.calls[call], arguments=arguments)
                return ()
            case facts.ToolCalled() | facts.ToolStarted() | facts.ToolFinished() | signals.ToolOutput():
                return self._call(event)
            case facts.ModelFailed(usage=Usage() as usage, cost=most) as body:
                self._count(*((usage, most) if not body.turn else (Usage(), None)))
                return (*passing(event), *_guessed(body))
            case facts.TurnStarted(input=input):
                self._usage, self._cost = Usage(), None
                self._dry = input in self.inputs and self.inputs[input].dry_run
                return ()
            case FilesChanged(gaps=gaps) if self._gaps is not None:
                self._gaps |= dict.fromkeys(map(self._veil.restored, gaps))
                return ()
            case facts.TurnEnded() as body:
                return self._ended(body, event.session)
            case facts.InputReceived(id=id) as body:
                self.inputs[id] = body
                return ()
            case facts.ModelRequested(role="main", model=model, chat_only=True) if model != self._chats:
                # Once for each model: who asks for work must know why none is done.
                self._chats = model
                return (*_note(f"{flat(model)}: {chat_only(model)}", "warn"), *passing(event))
            case facts.InputDelivered(id=id):
                return _note(f"↳ heard: {flat(self.said(id))}")
            case _:
                return passing(event)

    def _piece(self, text: str) -> tuple[Act, ...]:
        self._begun = True
        shown = self._answer.add(text)
        return (Piece(shown),) if shown else ()

    def said(self, input: str) -> str:
        """The words of a message."""
        return self.inputs[input].text if input in self.inputs else ""

    def _responded(self, body: facts.ModelResponded) -> tuple[Act, ...]:
        self._count(body.usage, body.cost)
        if body.role != "main":
            return ()
        # The person reads what the model could not.
        said = Said(self._veil.restored(body.text), final=body.calls == 0)
        self._answer, self._begun = Revealed(self._veil), False
        filling = self._filling(body.usage)
        if body.calls:
            return (said, *filling)
        if body.finish == "length":
            return (said, Shown((line(CUT_OFF, "warn"),), always=True))
        return (said, *filling) if body.text.strip() else (said, Shown((line(NOTHING, "warn"),), always=True))

    def _filling(self, usage: Usage) -> tuple[Act, ...]:
        """A word on the window, once for each step that it fills up."""
        if not usage.input:
            return ()
        used, before = usage.input + usage.output, self._level
        self._level = gauge.level(used, self._window)
        if gauge.rank(self._level) <= gauge.rank(before):
            return ()
        full = f"context {gauge.percent(used, self._window)} % of {self._window:,} tokens ({self._level})"
        return _note(f"{full}: {gauge.SAID[self._level]}", "dim" if self._level == "advisory" else "warn")

    def _count(self, usage: Usage, cost: int | None) -> None:
        self._usage = self._usage + usage
        if cost is not None:
            self._cost = (self._cost or 0) + cost

    def _call(self, event: Event) -> tuple[Act, ...]:
        match event.body:
            case facts.ToolCalled(call=call) as body:
                self.calls[call] = body
                return ()
            case facts.ToolStarted(call=call, effect=effect):
                silent = self._name(call) in SILENT
                return () if silent else (Began(call, self._title(call, dry=self._dry and effect != "read")),)
            case signals.ToolOutput(text=text):
                last = next((row for row in reversed(text.splitlines()) if row.strip()), "")
                return (Busy(flat(last, 60)),) if last else ()
            case facts.ToolFinished(call=call, ok=ok) as body:
                if ok and self._name(call) in SILENT:
                    return ()
                return (Done(call, self._title(call, dry=body.dry), call_mark(body), self._changed(body)),)
            case _:
                return ()

    def _changed(self, body: facts.ToolFinished) -> tuple[Line, ...]:
        called = self.calls.get(body.call)
        if body.dry:
            return tuple(dry_lines(body.output))
        return tuple(change_lines(called.arguments)) if body.ok and called else ()

    def _name(self, call: str) -> str:
        return self.calls[call].name if call in self.calls else "call"

    def _title(self, call: str, *, dry: bool = False) -> str:
        called = self.calls.get(call)
        if called is None:
            return call
        return (dry_title if dry else call_title)(called.name, called.arguments)

    def _ended(self, body: facts.TurnEnded, session: str) -> tuple[Act, ...]:
        sums = " · ".join(filter(None, [count(body.rounds, "round"), spent(self._usage, self._cost), took(body.ms)]))
        # What to do about a budget stands in the trouble itself.
        capped = body.trouble is not None and "scope" in body.trouble.details
        hint = "" if capped else self._hints.of(body.outcome, session)
        ended = Ended(body.outcome, body.trouble, sums, hint)
        return (*self._uncovered(), *(_note(DRY, "warn") if self._dry else ()), ended)

    def _uncovered(self) -> tuple[Act, ...]:
        """What the turn changed that an undo will not bring back."""
        gaps, self._gaps = self._gaps, None if self._gaps is None else {}
        return (Shown((line(UNCOVERED, "warn"), *gap_lines(gaps))),) if gaps else ()


def chat_only(model: str) -> str:
    """What is said of a model that gets no tools."""
    return f"small model, {CHAT_ONLY}" if model == f"{NAME}/{SMALL}" else CHAT_ONLY


def end_lines(ended: Ended) -> list[Line]:
    """Why a turn did not finish. That somebody stopped it is no error."""
    if ended.outcome == "cancelled":
        return [line("stopped", "warn")]
    if ended.trouble is None:
        return []
    return [*trouble_lines(ended.trouble), *([line(f"  → {ended.hint}", "dim")] if ended.hint else [])]


def passing(event: Event) -> tuple[Act, ...]:  # noqa: C901, PLR0911, PLR0912 - one flat table
    """What an event shows by itself, whatever came before."""
    match event.body:
        case facts.ModelRequested(role="main", model=model):
            return (Busy(f"waiting for {flat(model)}"),)
        case signals.ReasoningDelta():
            return (Busy("thinking"),)
        case signals.ArgsDelta(name=name):
            return (Busy(f"writing {flat(name)}"),)
        case signals.Progress(text=text) | signals.Live(progress=text) if text:
            return (Busy(flat(text)),)
        case signals.Lagged():
            return (Lost(),)
        case facts.ModelFailed() as body:
            return _failed(body)
        case facts.ModelFellBack() as body:
            return _fell_back(body)
        case facts.PlanUpdated(steps=steps):
            return (Shown(tuple(plan_lines(steps))),)
        case facts.StateChanged(to="compacting"):
            return (Busy("summarising what was said"),)
        case facts.CompactionMade(tokens_before=before, tokens_after=after):
            return _note(f"summarised: {before:,} → {after:,} tokens; the log keeps everything")
        case facts.CompactionFailed(trouble=trouble):
            return _note(f"summarising failed, nothing was dropped: {flat(trouble.message)}", "warn")
        case facts.TurnResumed(attempt=attempt):
            return _note(f"going on with an interrupted turn (attempt {attempt})", "warn")
        case facts.SessionMode(mode=mode):
            return _note(f"mode is now {mode} for this session")
        case facts.SessionModel(model=model):
            return _note(f"model is now {flat(model)} for this session")
        case facts.SessionRole(role=role, model=model):
            return _note(f"{flat(role)} is now {flat(model) or 'as configured'} for this session")
        case facts.GrantRevoked(rule=rule):
            return _note(f"not allowed for this session any more: {flat(rule_told(rule))}")
        case facts.StateChanged(to="paused"):
            return _note("paused")
        case budget.SessionBudget() | budget.BudgetWarned() | budget.BudgetExceeded():
            return _budget(event.body)
        case _:
            return _delivery(event)


def _budget(body: budget.SessionBudget | budget.BudgetWarned | budget.BudgetExceeded) -> tuple[Act, ...]:
    match body:
        case budget.SessionBudget(money=None):
            return _note("this session has no budget of its own any more")
        case budget.SessionBudget(money=int() as money):
            return _note(f"budget of this session: {budget.dollars(money)}")
        case budget.BudgetWarned(scope=scope, name=name, what=what, used=used, cap=cap):
            said = f"{used * 100 // cap} % of the budget of {budget.owner(scope, flat(name))} is used"
            return _note(f"! {said}: {budget.share(what, used, cap)}", "warn")
        case budget.BudgetExceeded(model=model, what=what, reserved=reserved, used=used):
            said = f"! an answer of {flat(model)} took {budget.told(what, used)}"
            return _note(f"{said}; {budget.told(what, reserved)} at the most was foreseen", "warn")
        case _:
            return ()


def _guessed(body: facts.ModelFailed) -> tuple[Act, ...]:
    most = budget.dollars(body.cost) if body.cost is not None else "its tokens"
    call = "a call of an earlier turn" if body.turn else "that call"
    return _note(f"{call} may have been charged: {most} counted, the most it can have been", "warn")


def _delivery(event: Event) -> tuple[Act, ...]:
    match event.body:
        case deliveries.DeliveryRecorded(channel=deliveries.DOOR) as body:
            rows = [
                line(f"◆ {flat(body.title, 200)}", "bold"),
                *(line(f"  {row}") for row in clean(body.text).splitlines()),
            ]
            # What a question or an end is about stands there anyway.
            shown = (Shown(tuple(rows), always=True),) if body.why == "notify" else ()
            return shown if body.urgency == "low" else (*shown, Rang())
        case deliveries.DeliveryFailed(id=id, trouble=trouble, retry_ms=pause):
            again = "it is given up" if pause is None else f"trying again in {took(pause)}"
            return _note(
                f"! not delivered by {id.rpartition('.')[2]}: {clause(flat(trouble.message, 200))}; {again}", "warn"
            )
        case _:
            return ()


def _failed(body: facts.ModelFailed) -> tuple[Act, ...]:
    if body.retry_ms is None:
        return ()
    said = f"! {clause(flat(body.trouble.message, 200))}; trying again in {took(body.retry_ms)}"
    return (Shown((line(said, "warn"),)), Busy("next try", body.retry_ms))


def _fell_back(body: facts.ModelFellBack) -> tuple[Act, ...]:
    then = f"{flat(body.to)} takes over for this turn" if body.to else "nobody can take over"
    said = f"! {flat(body.model)} did not answer ({clause(flat(body.trouble.message, 200))}); {then}"
    passed = [f"  {flat(model)} was passed over: {flat(why)}" for model, why in body.passed.items()]
    return (Shown((line(said, "warn"), *(line(row, "dim") for row in passed)), always=True),)


def _note(text: str, style: Style = "dim") -> tuple[Act, ...]:
    return (Shown((line(text, style),)),)
