"""A turn as it is told to somebody who watches: events in, what to show out. Pure; each door shows it its own way."""

from msgspec import Struct

from sylph.core import facts, signals
from sylph.core.errors import Trouble
from sylph.core.events import Event
from sylph.core.messages import Usage
from sylph.core.text import count
from sylph.interfaces.render import (
    Line,
    Style,
    call_mark,
    call_title,
    change_lines,
    flat,
    line,
    plan_lines,
    spent,
    took,
    trouble_lines,
)

# Calls that show themselves in another way: as the plan, as a question.
SILENT = frozenset({"plan", "ask_user"})


class Piece(Struct, frozen=True):
    """The next piece of the answer, while it is written."""

    text: str


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
    """Something worth a line of its own."""

    lines: tuple[Line, ...]


class Busy(Struct, frozen=True):
    """What is being waited for; with `ms`, for how long."""

    label: str
    ms: int = 0


class Ended(Struct, frozen=True):
    """The turn is over."""

    outcome: facts.Outcome
    trouble: Trouble | None
    sums: str


Act = Piece | Said | Began | Done | Shown | Busy | Ended


class Narrator:
    """Knows what was said before, so that a result finds its call and a turn its sums."""

    def __init__(self) -> None:
        self.calls: dict[str, facts.ToolCalled] = {}
        self.inputs: dict[str, str] = {}
        self._usage = Usage()
        self._cost: int | None = None

    def see(self, event: Event) -> tuple[Act, ...]:  # noqa: PLR0911 - one flat table
        """What this event adds to the picture."""
        match event.body:
            case signals.TextDelta(text=text):
                return (Piece(text),)
            case facts.ModelResponded() as body:
                return self._responded(body)
            case facts.ToolCalled() | facts.ToolStarted() | facts.ToolFinished() | signals.ToolOutput():
                return self._call(event)
            case facts.TurnStarted():
                self._usage, self._cost = Usage(), None
                return ()
            case facts.TurnEnded() as body:
                return (Ended(body.outcome, body.trouble, self._sums(body)),)
            case facts.InputReceived(id=id, text=text):
                self.inputs[id] = text
                return ()
            case facts.InputDelivered(id=id):
                return _note(f"↳ heard: {flat(self.inputs.get(id, ''))}")
            case _:
                return passing(event)

    def _responded(self, body: facts.ModelResponded) -> tuple[Act, ...]:
        self._usage = self._usage + body.usage
        if body.cost is not None:
            self._cost = (self._cost or 0) + body.cost
        if body.role != "main":
            return ()
        return (Said(body.text, final=body.calls == 0),)

    def _call(self, event: Event) -> tuple[Act, ...]:
        match event.body:
            case facts.ToolCalled(call=call) as body:
                self.calls[call] = body
                return ()
            case facts.ToolStarted(call=call):
                silent = self._name(call) in SILENT
                return () if silent else (Began(call, self._title(call)), Busy(self._title(call)))
            case signals.ToolOutput(call=call, text=text):
                last = next((row for row in reversed(text.splitlines()) if row.strip()), "")
                return (Busy(flat(last, 60)),) if last else ()
            case facts.ToolFinished(call=call, ok=ok) as body:
                if ok and self._name(call) in SILENT:
                    return ()
                called = self.calls.get(call)
                more = change_lines(called.arguments) if ok and called else []
                return (Done(call, self._title(call), call_mark(body), tuple(more)),)
            case _:
                return ()

    def _name(self, call: str) -> str:
        return self.calls[call].name if call in self.calls else "call"

    def _title(self, call: str) -> str:
        called = self.calls.get(call)
        return call_title(called.name, called.arguments) if called else call

    def _sums(self, body: facts.TurnEnded) -> str:
        return " · ".join(filter(None, [count(body.rounds, "round"), spent(self._usage, self._cost), took(body.ms)]))


def end_lines(ended: Ended) -> list[Line]:
    """Why a turn did not finish. That somebody stopped it is no error."""
    if ended.outcome == "cancelled":
        return [line("stopped", "warn")]
    return list(trouble_lines(ended.trouble)) if ended.trouble else []


def passing(event: Event) -> tuple[Act, ...]:  # noqa: C901, PLR0911, PLR0912 - one flat table
    """What an event shows by itself, whatever came before."""
    match event.body:
        case facts.ModelRequested(role="main", model=model):
            return (Busy(f"waiting for {flat(model)}"),)
        case signals.ReasoningDelta():
            return (Busy("thinking"),)
        case signals.ArgsDelta(name=name):
            return (Busy(f"writing {flat(name)}"),)
        case signals.Progress(text=text):
            return (Busy(flat(text)),)
        case facts.ModelFailed() as body:
            return _failed(body)
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
            return _note(f"mode: {mode}")
        case facts.SessionModel(model=model):
            return _note(f"model: {flat(model)}")
        case facts.StateChanged(to="paused"):
            return _note("paused")
        case signals.Lagged(missed=missed):
            return _note(f"{count(missed, 'signal')} not shown: this terminal was too slow", "warn")
        case _:
            return ()


def _failed(body: facts.ModelFailed) -> tuple[Act, ...]:
    if body.retry_ms is None:
        return ()
    said = f"! {flat(body.trouble.message, 200)}; trying again in {took(body.retry_ms)}"
    return (Shown((line(said, "warn"),)), Busy("next try", body.retry_ms))


def _note(text: str, style: Style = "dim") -> tuple[Act, ...]:
    return (Shown((line(text, style),)),)
