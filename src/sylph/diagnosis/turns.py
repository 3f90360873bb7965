"""Turns, states, questions and messages: everything that begins comes to exactly one end."""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.facts.file_change import FilesRestored, UndoStarted
from sylph.core.text.formatting import count_noun, first_line
from sylph.diagnosis.finding import DiagnosisCase, DiagnosisFinding, FindingState
from sylph.engine.folds.state_machine import STATES, TRANSITIONS, TRIGGERS
from sylph.engine.turn.agent_loop import MOST_RESUMES

KNOWN_EDGES = {(was, trigger, to) for was, row in TRANSITIONS.items() for trigger, to in row.items()}


class _TurnTracker(Struct):
    open: Event | None = None
    begun: set[str] = field(default_factory=set[str])
    ends: list[tuple[Event, facts.TurnEnded]] = field(default_factory=list[tuple[Event, facts.TurnEnded]])
    resumes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    wrong: list[tuple[str, tuple[int, ...]]] = field(default_factory=list[tuple[str, tuple[int, ...]]])

    def track_event(self, event: Event) -> None:
        match event.body:
            case facts.TurnStarted():
                self._track_start(event)
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

    def _track_start(self, event: Event) -> None:
        if self.open:
            self.wrong.append((f"{self.open.turn} has no end, and {event.turn} began", (self.open.seq, event.seq)))
        if event.turn in self.begun:
            self.wrong.append((f"{event.turn} began a second time", (event.seq,)))
        self.open = event
        self.begun.add(event.turn)


def check_turns(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    seen = _TurnTracker()
    for event in case.events:
        seen.track_event(event)
    for what, evidence in seen.wrong:
        yield DiagnosisFinding(
            "turns", "fail", f"{what}.", evidence, (case.events_command, f"sylph verify {case.session}")
        )
    if seen.open and case.live.pid:
        message = f"{seen.open.turn} runs now, in {_process_name(case.live.pid)}."
        yield DiagnosisFinding("turns", "note", message, (seen.open.seq,), ("sylph status",))
    elif seen.open:
        evidence = (seen.open.seq, *seen.resumes.get(seen.open.turn, ()))
        message = f"{seen.open.turn} was interrupted and is not finished."
        yield DiagnosisFinding(
            "turns", "warn", message, evidence, (case.resume_command, f"{case.resume_command} --drop")
        )
    begun = [event for event in case.events if isinstance(event.body, UndoStarted)]
    if begun and not any(isinstance(event.body, FilesRestored) and event.seq > begun[-1].seq for event in case.events):
        message = "An undo was cut off; some files may be back and some not."
        yield DiagnosisFinding("turns", "warn", message, (begun[-1].seq,), (f"sylph undo {case.session}",))
    yield from (found for event, body in seen.ends if (found := _describe_end(case, event, body)))
    for turn, seqs in seen.resumes.items():
        message = f"{turn} was interrupted and resumed {count_noun(len(seqs), 'time')} (of {MOST_RESUMES})."
        yield DiagnosisFinding("turns", "note", message, tuple(seqs), (case.task_command(turn),))


def _describe_end(case: DiagnosisCase, event: Event, body: facts.TurnEnded) -> DiagnosisFinding | None:
    """How a turn ended, where that is worth a word. Nobody needs to be told that they stopped it themselves."""
    kind = body.trouble.kind if body.trouble else ""
    if body.outcome in ("finished", "cancelled") or kind == "forked":
        return None
    said = f": {first_line(body.trouble.message, 200)}" if body.trouble else "."
    what = "was given up" if kind == "gave_up" else f"ended as {body.outcome}"
    state: FindingState = "warn" if event.turn == case.last_turn and body.outcome != "budget" else "note"
    return DiagnosisFinding(
        "turns", state, f"{event.turn} {what}{said}", (event.seq,), (case.task_command(event.turn),)
    )


def _process_name(pid: int) -> str:
    return f"process {pid}" if pid > 0 else "a process that cannot be told"


def check_states(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    """Each change starts where the last one ended and takes an edge that there is."""
    state, last, turn = "idle", 0, False
    for event in case.events:
        match event.body:
            case facts.TurnStarted() | facts.TurnEnded():
                turn = isinstance(event.body, facts.TurnStarted)
            case facts.StateChanged() as body:
                if body.to not in STATES or body.event not in TRIGGERS or body.was not in STATES:
                    message = f"{body.was} → {body.to} by {body.event} is of a newer Sylph."
                    yield DiagnosisFinding("states", "note", message, (event.seq,), (case.events_command,))
                elif body.was != state or (body.was, body.event, body.to) not in KNOWN_EDGES:
                    message = f"The session was {state}, and went from {body.was} to {body.to} by {body.event}."
                    yield DiagnosisFinding(
                        "states", "fail", message, tuple(filter(None, (last, event.seq))), (case.events_command,)
                    )
                state, last = body.to, event.seq
            case _:
                pass
    yield from _check_current_state(case, state, last, turn=turn)


def _check_current_state(case: DiagnosisCase, state: str, last: int, *, turn: bool) -> Iterator[DiagnosisFinding]:
    if turn and state == "idle":
        yield DiagnosisFinding(
            "states", "fail", "A turn is open, and the session says that it is idle.", (last,), (case.resume_command,)
        )
    elif not turn and state != "idle" and not case.live.pid:
        message = f"The session says {state}, no turn is open and no process works on it; the next turn mends that."
        yield DiagnosisFinding("states", "warn", message, (last,), (f'sylph -s {case.session} "go on"',))


def check_questions(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    waiting: dict[str, Event] = {}
    resumed = set[str]()
    for event in case.events:
        match event.body:
            case facts.Asked(id=id):
                waiting[id] = event
            case facts.Answered(id=id):
                if waiting.pop(id, None) is None:
                    message = f"{id} was answered and does not wait for an answer."
                    yield DiagnosisFinding("questions", "fail", message, (event.seq,), (case.events_command,))
            case facts.TurnResumed():
                # Whoever waited for the answer is dead; the turn asks anew what it still needs to know.
                resumed |= waiting.keys()
            case facts.TurnEnded() as body:
                yield from _find_unanswered(
                    case, event, body, [each for id, each in waiting.items() if id not in resumed]
                )
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
        steps = ("sylph status",) if case.live.pid else (case.resume_command, f"{case.resume_command} --drop")
        yield DiagnosisFinding("questions", "note" if case.live.pid else "warn", message, (event.seq,), steps)


def _find_unanswered(
    case: DiagnosisCase, event: Event, body: facts.TurnEnded, asked: Sequence[Event]
) -> Iterator[DiagnosisFinding]:
    state: FindingState = "fail" if body.outcome == "finished" else "note"
    for each in asked:
        id = each.body.id if isinstance(each.body, facts.Asked) else ""
        message = f"{id} was never answered; its turn ended as {body.outcome}."
        yield DiagnosisFinding("questions", state, message, (each.seq, event.seq), (case.task_command(event.turn),))


def check_inputs(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
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
                    yield DiagnosisFinding("inputs", "fail", message, (max(before), event.seq), (case.events_command,))
                waiting[id], known[id], keys[key] = event, event.seq, event.seq
            case facts.TurnStarted(input=id) | facts.InputDelivered(id=id) | facts.InputCancelled(id=id):
                if waiting.pop(id, None) is None:
                    message = f"{event.type} names {id}, which does not wait: it came a second time, or never."
                    evidence = tuple(filter(None, (known.get(id), event.seq)))
                    yield DiagnosisFinding("inputs", "fail", message, evidence, (case.events_command,))
            case facts.SessionForked():
                waiting = {}
            case _:
                pass
    if waiting and case.live.pid:
        message = f"{count_noun(len(waiting), 'message')} in the queue of the running turn."
        yield DiagnosisFinding(
            "inputs", "note", message, tuple(event.seq for event in waiting.values()), ("sylph status",)
        )
    elif waiting:
        message = f"{count_noun(len(waiting), 'message')} received and never begun."
        steps = (case.resume_command, f"{case.resume_command} --drop")
        yield DiagnosisFinding("inputs", "warn", message, tuple(event.seq for event in waiting.values()), steps)
