"""Turns, states, questions and messages: everything that begins comes to exactly one end."""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from sylph.core import facts
from sylph.core.changes import FilesRestored, UndoStarted
from sylph.core.events import Event
from sylph.core.text import count, first_line
from sylph.engine.diagnosis.finding import Case, Finding, State
from sylph.engine.states import EDGES, STATES, TRIGGERS
from sylph.engine.turn import MOST_RESUMES

KNOWN = {(was, trigger, to) for was, row in EDGES.items() for trigger, to in row.items()}


class _Turns(Struct):
    open: Event | None = None
    begun: set[str] = field(default_factory=set[str])
    ends: list[tuple[Event, facts.TurnEnded]] = field(default_factory=list[tuple[Event, facts.TurnEnded]])
    resumes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    wrong: list[tuple[str, tuple[int, ...]]] = field(default_factory=list[tuple[str, tuple[int, ...]]])

    def see(self, event: Event) -> None:
        match event.body:
            case facts.TurnStarted():
                self._start(event)
            case facts.TurnResumed():
                self.resumes.setdefault(event.turn, []).append(event.seq)
                if self.open is None or self.open.turn != event.turn:
                    self.wrong.append((f"{event.turn or 'a turn'} was resumed and is not open", (event.seq,)))
            case facts.TurnEnded() as body:
                if self.open is None or self.open.turn != event.turn:
                    again = event.turn in self.begun
                    what = "ended a second time" if again else "ended and never began"
                    self.wrong.append((f"{event.turn or 'a turn'} {what}", (event.seq,)))
                else:
                    self.open = None
                    self.ends.append((event, body))
            case _:
                pass

    def _start(self, event: Event) -> None:
        if self.open:
            self.wrong.append((f"{self.open.turn} has no end, and {event.turn} began", (self.open.seq, event.seq)))
        if event.turn in self.begun:
            self.wrong.append((f"{event.turn} began a second time", (event.seq,)))
        self.open = event
        self.begun.add(event.turn)


def turns(case: Case) -> Iterator[Finding]:
    seen = _Turns()
    for event in case.events:
        seen.see(event)
    for what, evidence in seen.wrong:
        yield Finding("turns", "fail", f"{what}.", evidence, (case.facts, f"sylph verify {case.session}"))
    if seen.open and case.live.pid:
        message = f"{seen.open.turn} runs now, in {_process(case.live.pid)}."
        yield Finding("turns", "note", message, (seen.open.seq,), ("sylph status",))
    elif seen.open:
        evidence = (seen.open.seq, *seen.resumes.get(seen.open.turn, ()))
        message = f"{seen.open.turn} was interrupted and is not finished."
        yield Finding("turns", "warn", message, evidence, (case.resume, f"{case.resume} --drop"))
    begun = [event for event in case.events if isinstance(event.body, UndoStarted)]
    if begun and not any(isinstance(event.body, FilesRestored) and event.seq > begun[-1].seq for event in case.events):
        message = "An undo was cut off; some files may be back and some not."
        yield Finding("turns", "warn", message, (begun[-1].seq,), (f"sylph undo {case.session}",))
    yield from (found for event, body in seen.ends if (found := _end(case, event, body)))
    for turn, seqs in seen.resumes.items():
        message = f"{turn} was interrupted and resumed {count(len(seqs), 'time')} (of {MOST_RESUMES})."
        yield Finding("turns", "note", message, tuple(seqs), (case.task(turn),))


def _end(case: Case, event: Event, body: facts.TurnEnded) -> Finding | None:
    """How a turn ended, where that is worth a word. Nobody needs to be told that they stopped it themselves."""
    kind = body.trouble.kind if body.trouble else ""
    if body.outcome in ("finished", "cancelled") or kind == "forked":
        return None
    said = f": {first_line(body.trouble.message, 200)}" if body.trouble else "."
    what = "was given up" if kind == "gave_up" else f"ended as {body.outcome}"
    state: State = "warn" if event.turn == case.last_turn and body.outcome != "budget" else "note"
    return Finding("turns", state, f"{event.turn} {what}{said}", (event.seq,), (case.task(event.turn),))


def _process(pid: int) -> str:
    return f"process {pid}" if pid > 0 else "a process that cannot be told"


def states(case: Case) -> Iterator[Finding]:
    """Each change starts where the last one ended and takes an edge that there is."""
    state, last, turn = "idle", 0, False
    for event in case.events:
        match event.body:
            case facts.TurnStarted() | facts.TurnEnded():
                turn = isinstance(event.body, facts.TurnStarted)
            case facts.StateChanged() as body:
                if body.to not in STATES or body.event not in TRIGGERS or body.was not in STATES:
                    message = f"{body.was} → {body.to} by {body.event} is of a newer Sylph."
                    yield Finding("states", "note", message, (event.seq,), (case.facts,))
                elif body.was != state or (body.was, body.event, body.to) not in KNOWN:
                    message = f"The session was {state}, and went from {body.was} to {body.to} by {body.event}."
                    yield Finding("states", "fail", message, tuple(filter(None, (last, event.seq))), (case.facts,))
                state, last = body.to, event.seq
            case _:
                pass
    yield from _now(case, state, last, turn=turn)


def _now(case: Case, state: str, last: int, *, turn: bool) -> Iterator[Finding]:
    if turn and state == "idle":
        yield Finding(
            "states", "fail", "A turn is open, and the session says that it is idle.", (last,), (case.resume,)
        )
    elif not turn and state != "idle" and not case.live.pid:
        message = f"The session says {state}, no turn is open and no process works on it; the next turn mends that."
        yield Finding("states", "warn", message, (last,), (f'sylph -s {case.session} "go on"',))


def questions(case: Case) -> Iterator[Finding]:
    waiting: dict[str, Event] = {}
    resumed = set[str]()
    for event in case.events:
        match event.body:
            case facts.Asked(id=id):
                waiting[id] = event
            case facts.Answered(id=id):
                if waiting.pop(id, None) is None:
                    message = f"{id} was answered and does not wait for an answer."
                    yield Finding("questions", "fail", message, (event.seq,), (case.facts,))
            case facts.TurnResumed():
                # Whoever waited for the answer is dead; the turn asks anew what it still needs to know.
                resumed |= waiting.keys()
            case facts.TurnEnded() as body:
                yield from _unanswered(case, event, body, [each for id, each in waiting.items() if id not in resumed])
                waiting = {}
            case facts.SessionForked():
                waiting = {}
            case _:
                pass
    for id, event in waiting.items():
        if id in resumed:
            continue
        where = "answer it where the session runs" if case.live.pid else "the resumed turn asks it again"
        message = f"{id} waits for an answer: {where}."
        steps = ("sylph status",) if case.live.pid else (case.resume, f"{case.resume} --drop")
        yield Finding("questions", "note" if case.live.pid else "warn", message, (event.seq,), steps)


def _unanswered(case: Case, event: Event, body: facts.TurnEnded, asked: Sequence[Event]) -> Iterator[Finding]:
    state: State = "fail" if body.outcome == "finished" else "note"
    for each in asked:
        id = each.body.id if isinstance(each.body, facts.Asked) else ""
        message = f"{id} was never answered; its turn ended as {body.outcome}."
        yield Finding("questions", state, message, (each.seq, event.seq), (case.task(event.turn),))


def inputs(case: Case) -> Iterator[Finding]:
    """A message is received once, and then begins a turn, reaches one, or is taken back: once."""
    waiting: dict[str, Event] = {}
    known: dict[str, int] = {}
    keys: dict[str, int] = {}
    for event in case.events:
        match event.body:
            case facts.InputReceived(id=id, key=key):
                before = (known.get(id) or 0, keys.get(key) or 0 if key else 0)
                if any(before):
                    message = f"{id} was received twice: a repeated message must stay one."
                    yield Finding("inputs", "fail", message, (max(before), event.seq), (case.facts,))
                waiting[id], known[id], keys[key] = event, event.seq, event.seq
            case facts.TurnStarted(input=id) | facts.InputDelivered(id=id) | facts.InputCancelled(id=id):
                if waiting.pop(id, None) is None:
                    message = f"{event.type} names {id}, which does not wait: it came a second time, or never."
                    evidence = tuple(filter(None, (known.get(id), event.seq)))
                    yield Finding("inputs", "fail", message, evidence, (case.facts,))
            case facts.SessionForked():
                waiting = {}
            case _:
                pass
    if waiting and case.live.pid:
        message = f"{count(len(waiting), 'message')} in the queue of the running turn."
        yield Finding("inputs", "note", message, tuple(event.seq for event in waiting.values()), ("sylph status",))
    elif waiting:
        message = f"{count(len(waiting), 'message')} received and never begun."
        steps = (case.resume, f"{case.resume} --drop")
        yield Finding("inputs", "warn", message, tuple(event.seq for event in waiting.values()), steps)
