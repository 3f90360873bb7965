"""Calls: each has one result, in its turn and in its order; and what became of their effects."""

from collections.abc import Iterator

from msgspec import Struct

from sylph.core import facts
from sylph.core.errors import OutcomeUnknown
from sylph.core.events import Event, UnreadableRecord
from sylph.core.text.formatting import count_noun
from sylph.diagnosis.finding import DiagnosisCase, DiagnosisFinding, FindingState

# What a resume will make of a call that had started: by how its outcome can be learned, and what its journal says.
RESUME_PROSPECTS: dict[tuple[str, str], tuple[FindingState, str]] = {
    ("pure", ""): ("note", "it does no harm twice and will be run again"),
    ("by_content", ""): ("note", "the files will tell whether it took effect"),
    ("by_key", ""): ("note", "it will be made again under the same key, by which its service knows it"),
    ("by_probe", ""): ("note", "it left no journal of a command, so it will be run"),
    ("by_probe", "running"): ("note", "its command still runs under its runner, and a resume finds it"),
    ("by_probe", "ended"): ("note", "its command has ended meanwhile, and its journal holds the true result"),
    ("by_probe", "lost"): ("warn", "its runner died too, so its outcome will be unknown"),
}
UNKNOWABLE_OUTCOME: tuple[FindingState, str] = (
    "warn",
    "nothing can tell whether it took effect, so its outcome will be unknown",
)


class _TrackedCall(Struct):
    event: Event
    body: facts.ToolCalled
    allowed: bool = False
    started: facts.ToolStarted | None = None
    at: int = 0


class _CallTracker:
    """Follows calls through a log and keeps what does not fit."""

    def __init__(self) -> None:
        self.open: dict[str, _TrackedCall] = {}
        self.done: set[str] = set()
        self.wrong: list[tuple[str, tuple[int, ...]]] = []
        self._announced: tuple[int, int] = (0, 0)

    def track_event(self, event: Event) -> None:
        self._check_announced(event)
        match event.body:
            case facts.ToolCalled(call=call) as body:
                if call in self.done or call in self.open:
                    self._report_problem(f"{call} was called a second time", event)
                self.open[call] = _TrackedCall(event, body)
            case facts.ToolDecided(call=call, decision=decision):
                if known := self._find_open(call, event, "was decided about"):
                    known.allowed = decision == "allow"
            case facts.ToolStarted(call=call) as body:
                self._track_start(call, body, event)
            case facts.ToolFinished(call=call):
                self._track_finish(call, event)
            case facts.TurnEnded():
                for call, known in self.open.items():
                    self._report_problem(f"{call} has no result though its turn has ended", known.event, event)
                self.open = {}
            case facts.SessionForked():
                # The branch was cut off here, on purpose.
                self.done, self.open, self._announced = self.done | set(self.open), {}, (0, 0)
            case _:
                pass

    def _track_start(self, call: str, body: facts.ToolStarted, event: Event) -> None:
        if known := self._find_open(call, event, "was started"):
            if not known.allowed:
                self._report_problem(f"{call} was started without having been allowed", event)
            known.started, known.at = body, event.seq

    def _track_finish(self, call: str, event: Event) -> None:
        if call in self.done and call not in self.open:
            self._report_problem(f"{call} has a second result", event)
        elif known := self._find_open(call, event, "has a result"):
            if known.event.turn != event.turn:
                self._report_problem(f"{call} has its result in another turn", known.event, event)
            del self.open[call]
            self.done.add(call)

    def _find_open(self, call: str, event: Event, what: str) -> _TrackedCall | None:
        if call not in self.open:
            self._report_problem(f"{call} {what}, and no fact before says that it was called", event)
        return self.open.get(call)

    def _check_announced(self, event: Event) -> None:
        """An answer says how many calls it makes; they follow at once."""
        seq, left = self._announced
        if event.type == facts.ToolCalled.wire:
            self._announced = (seq, left - 1)
            return
        if left and not isinstance(event.body, facts.SessionForked | UnreadableRecord):
            more = "fewer" if left > 0 else "more"
            self.wrong.append((f"{more} calls follow the answer than it announced", (seq, event.seq)))
        self._announced = (0, 0)
        if isinstance(event.body, facts.ModelResponded) and event.body.role == "main":
            self._announced = (event.seq, event.body.calls)

    def _report_problem(self, what: str, *events: Event) -> None:
        self.wrong.append((what, tuple(event.seq for event in events)))


def _track_calls(case: DiagnosisCase) -> _CallTracker:
    calls = _CallTracker()
    for event in case.events:
        calls.track_event(event)
    return calls


def check_pairing(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    for what, evidence in _track_calls(case).wrong:
        yield DiagnosisFinding(
            "calls", "fail", f"{what}.", evidence, (case.events_command, f"sylph verify {case.session}")
        )


def check_effects(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    """Calls that began and have no result yet."""
    for call, known in _track_calls(case).open.items():
        if known.started is None:
            continue
        named = f"{call} ({known.body.name})"
        if case.live.pid:
            yield DiagnosisFinding("effects", "note", f"{named} runs now.", (known.at,), ("sylph status",))
            continue
        journal = case.live.journals.get(call, "") if known.started.recourse == "by_probe" else ""
        state, said = RESUME_PROSPECTS.get((known.started.recourse, journal), UNKNOWABLE_OUTCOME)
        message = f"{named} had started when its process died: {said}."
        yield DiagnosisFinding(
            "effects", state, message, (known.event.seq, known.at), (case.resume_command, case.show_command)
        )


def check_unknown_outcomes(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    """Results that nobody knows."""
    ended = [event for event in case.events if isinstance(event.body, facts.ToolFinished)]
    doubtful = [event for event in ended if _error_kind(event) == OutcomeUnknown.kind]
    started = {event.body.call for event in case.events if isinstance(event.body, facts.ToolStarted)}
    cut = [event for event in ended if _error_kind(event) == "cancelled" and _call_id(event) in started]
    if doubtful:
        names = ", ".join(_call_id(event) for event in doubtful)
        message = f"Whether {names} took effect is not known; the model was told so."
        seqs = tuple(event.seq for event in doubtful)
        yield DiagnosisFinding("unknown", "warn", message, seqs, (f"{case.show_command} --full",))
    if cut:
        message = f"{count_noun(len(cut), 'call')} stopped in the middle: some effect may be there."
        yield DiagnosisFinding("unknown", "note", message, tuple(event.seq for event in cut), (case.show_command,))


def _error_kind(event: Event) -> str:
    return event.body.trouble.kind if isinstance(event.body, facts.ToolFinished) and event.body.trouble else ""


def _call_id(event: Event) -> str:
    return event.body.call if isinstance(event.body, facts.ToolFinished) else ""
