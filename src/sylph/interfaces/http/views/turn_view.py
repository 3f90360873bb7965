"""A turn as the API shows it: what was said, what was called, what came of it. Pure."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Event
from sylph.core.messages import Image, Usage
from sylph.core.permission.types import Decision, Effect, Risk
from sylph.engine.folds.tasks import TurnTask
from sylph.engine.undo.turn_diff import TurnDiff

# What is longer is cut here, and whole under `calls/{call}/output`.
MAX_OUTPUT = 20_000
MAX_TITLE = 300
CallFate = Literal["asked_for", "denied", "running", "done", "failed"]
TurnState = Literal["queued", "open", "finished", "failed", "cancelled", "budget", "interrupted"]


class TurnRow(Struct, frozen=True, kw_only=True):
    """A turn in a list; as a task its id is SESSION.NUMBER. `text` is cut."""

    id: str
    session: str
    turn: str
    text: str
    outcome: TurnState
    started: Annotated[int, Meta(description="Milliseconds since 1970; 0 while it waits.")]
    ms: int
    rounds: int
    usage: Usage
    cost: int | None
    retry_of: str
    seq: Annotated[int, Meta(description="The fact it begins with.")]
    trouble: ErrorReport | None


class TurnMessage(Struct, frozen=True, kw_only=True):
    """Something said in a turn: by the person, by the model, or a note of Sylph's own."""

    seq: int
    ts: int
    role: Literal["user", "assistant", "note"]
    text: str
    id: str = ""
    reasoning: str = ""
    model: str = ""
    calls: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()
    usage: Usage | None = None
    cost: int | None = None
    ms: int = 0


class CallView(Struct, kw_only=True):
    """A call: what was asked for, who allowed it, and what it came to."""

    id: str
    seq: int
    ts: int
    name: str
    arguments: str
    fate: CallFate = "asked_for"
    decision: Decision | None = None
    reason: str = ""
    by: str = ""
    effect: Effect | None = None
    risk: Risk | None = None
    edited: bool = False
    output: str = ""
    cut: Annotated[bool, Meta(description="Whether there is more of the output than is shown here.")] = False
    exit: int | None = None
    ms: int = 0
    dry: bool = False
    images: tuple[Image, ...] = ()
    trouble: ErrorReport | None = None


class TurnView(TurnRow, frozen=True, kw_only=True):
    """A turn with all of its messages, calls and changes."""

    output: Annotated[str, Meta(description="The answer: the last thing the model said.")]
    messages: tuple[TurnMessage, ...]
    calls: tuple[CallView, ...]
    changes: TurnDiff | None


def turn_row(task: TurnTask, *, whole: bool = False) -> TurnRow:
    return TurnRow(
        id=task.id,
        session=task.session,
        turn=task.turn,
        text=task.text if whole else task.text[:MAX_TITLE],
        outcome=task.outcome,  # pyright: ignore[reportArgumentType] - one of the outcomes, or `open`
        started=task.started,
        ms=task.ms,
        rounds=task.rounds,
        usage=task.usage,
        cost=task.cost,
        retry_of=task.retry_of,
        seq=task.seq,
        trouble=task.trouble,
    )


class TurnViewFold:
    """What the events of one turn tell; `inputs` are the messages that may have reached it."""

    def __init__(self, inputs: dict[str, facts.InputReceived]) -> None:
        self._inputs = inputs
        self.said: list[TurnMessage] = []
        self.calls: dict[str, CallView] = {}

    def add_events(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add_event(event)

    def _add_event(self, event: Event) -> None:
        match event.body:
            case facts.TurnStarted(input=id) | facts.InputDelivered(id=id):
                self._add_input(event, id)
            case facts.ContextAdded(text=text):
                self.said.append(TurnMessage(seq=event.seq, ts=event.ts, role="note", text=text))
            case facts.ModelResponded(role="main") as body:
                self._add_answer(event, body)
            case facts.ToolCalled(call=call, name=name, arguments=arguments):
                self.calls[call] = CallView(id=call, seq=event.seq, ts=event.ts, name=name, arguments=arguments)
                self._link_call(call)
            case facts.ToolDecided() as body if body.call in self.calls:
                _apply_decision(self.calls[body.call], body)
            case facts.ToolStarted(call=call) if call in self.calls:
                self.calls[call].fate = "running"
            case facts.ToolFinished() as body if body.call in self.calls:
                _apply_result(self.calls[body.call], body)
            case _:
                pass

    def _add_input(self, event: Event, id: str) -> None:
        said = self._inputs.get(id)
        text, images = (said.text, said.images) if said else ("", ())
        self.said.append(TurnMessage(seq=event.seq, ts=event.ts, role="user", id=id, text=text, images=images))

    def _add_answer(self, event: Event, body: facts.ModelResponded) -> None:
        self.said.append(
            TurnMessage(
                seq=event.seq,
                ts=event.ts,
                role="assistant",
                text=body.text,
                reasoning=body.reasoning,
                model=body.model,
                usage=body.usage,
                cost=body.cost,
                ms=body.ms,
            )
        )

    def _link_call(self, call: str) -> None:
        for at in range(len(self.said) - 1, -1, -1):
            if self.said[at].role == "assistant":
                self.said[at] = replace(self.said[at], calls=(*self.said[at].calls, call))
                return


def _apply_decision(call: CallView, body: facts.ToolDecided) -> None:
    call.decision, call.reason, call.by = body.decision, body.reason, body.by
    call.effect, call.risk, call.edited = body.effect, body.risk, call.edited or bool(body.arguments)
    call.arguments = body.arguments or call.arguments


def _apply_result(call: CallView, body: facts.ToolFinished) -> None:
    call.fate = "done" if body.ok else "denied" if call.decision == "deny" else "failed"
    call.output, call.cut = body.output[:MAX_OUTPUT], bool(body.whole) or len(body.output) > MAX_OUTPUT
    call.exit, call.ms, call.dry, call.images, call.trouble = body.exit, body.ms, body.dry, body.images, body.trouble
