"""What must be so after a crash and a recovery, wherever the crash was."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.errors import OutcomeUnknown
from sylph.core.events import Event
from sylph.core.facts.budget import BudgetWarned
from sylph.core.facts.delivery import DOOR_CHANNEL, DeliveryConfirmed, DeliveryRecorded, delivery_key
from sylph.engine.budget.audit import audit_ledger
from sylph.engine.budget.ledger_store import LedgerStore
from sylph.engine.folds import fold
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState, question_keys
from sylph.engine.log.store import EventLog
from sylph.engine.log.verify import verify_session
from sylph.features.prove.scenario.fake_service import FakeService
from sylph.features.prove.scenario.scenarios import MARKED, NEVER, NOTED, SECRET, EraseStep, ProofScenario, UndoStep
from sylph.features.prove.scenario.scratch_folder import ScratchFolder, read_lines

PATIENCE = 3.0
# What is said of a background job whose end nobody saw.
LOST_JOB = "lost: its runner died"
# What the result of a call says that was stopped on purpose.
STOPPED_KINDS = ("cancelled", "no_effect")
STOPPED_NOTE = "[stopped]"


class CallRecords(Struct):
    """What the log says of every call."""

    called: dict[str, facts.ToolCalled] = field(default_factory=dict[str, facts.ToolCalled])
    finished: dict[str, list[facts.ToolFinished]] = field(default_factory=dict[str, list[facts.ToolFinished]])

    @property
    def unknown(self) -> list[str]:
        return [call for call, ends in self.finished.items() if any(_is_unknown(end) for end in ends)]

    def matched_pairs(self) -> Iterator[tuple[facts.ToolCalled, facts.ToolFinished]]:
        return ((called, end) for call, called in self.called.items() for end in self.finished.get(call, []))


class CrashEvidence(Struct, frozen=True):
    """All there is to look at."""

    scenario: ProofScenario
    place: ScratchFolder
    sink: FakeService
    log: EventLog
    may_be_unknown: bool

    def session_events(self, session: str) -> list[Event]:
        return self.log.read_events(session, limit=1_000_000)


def check_invariants(look: CrashEvidence) -> tuple[list[str], int]:
    """Everything that is not as it must be, and how many outcomes are unknown."""
    problems = [*_check_promises(look), *_check_store(look), *_check_leftovers(look.place), *_check_erasure(look)]
    sessions = {id: fold.load_state(look.log, id, SESSION_FOLD)[0] for id in look.log.session_ids()}
    calls = _collect_calls(look, sessions)
    for id, summary in sessions.items():
        problems += _check_idle(summary)
        problems += _check_turns(look.session_events(id), cut=look.scenario.cut)
        problems += _check_questions(look.session_events(id))
        problems += _check_deliveries(look, id, summary)
    problems += _check_messages(look, sessions)
    problems += _check_spending(look)
    problems += _check_results(calls, cut=look.scenario.cut)
    problems += _check_effects(look, calls)
    if calls.unknown and not look.may_be_unknown:
        problems += [f"the outcome of {call} is unknown, though it can be known" for call in calls.unknown]
    return problems, len(calls.unknown)


def _check_promises(look: CrashEvidence) -> Iterator[str]:
    """No acknowledged input is lost, and a replay gives the same again."""
    yield from (f"acknowledged and lost: {each}" for each in read_lines(look.place.lost))
    yield from (f"replays differently: {each}" for each in read_lines(look.place.diverged))


def _check_store(look: CrashEvidence) -> Iterator[str]:
    yield from (f"store: {trouble.message}" for trouble in look.log.check_integrity())
    for id in look.log.all_session_ids():
        yield from (f"chain: {trouble.message}" for trouble in verify_session(look.log, id).problems)


def _check_spending(look: CrashEvidence) -> Iterator[str]:
    """Every request is answered, failed or put aside for good; and the sums of the purse are those of the log."""
    if look.scenario.budget is None:
        return
    data = look.place.store.parent
    found = audit_ledger(data, look.place.store)
    if found and (found.differ or found.damaged):
        yield f"the purse does not agree with the log: {found}"
    with contextlib.closing(LedgerStore(data, look.place.store)) as store:
        left = [hold for hold in store.list_reservations() if store.attempt_outcome(hold) == "unknown"]
    for id in look.log.session_ids():
        asked = len(look.log.find_facts(id, facts.ModelRequested))
        ends = len(look.log.find_facts(id, facts.ModelResponded)) + len(look.log.find_facts(id, facts.ModelFailed))
        held = sum(hold.who.session == id for hold in left)
        if asked != ends + held:
            yield f"{asked} requests, {ends} ends, {held} put aside"
        if len(look.log.find_facts(id, BudgetWarned)) > 1:
            yield "warned twice"


def _check_idle(summary: SessionState) -> Iterator[str]:
    """Nothing is left open."""
    if summary.state != "idle":
        yield f"the session is {summary.state}"
    for what in ("open_turn", "queue", "open_calls", "asked", "undoing", "outbox"):
        if left := getattr(summary, what):
            yield f"{what} is left: {left}"


def _check_turns(events: Sequence[Event], *, cut: bool) -> Iterator[str]:
    """Exactly one end for each turn."""
    began = [event.turn for event in events if isinstance(event.body, facts.TurnStarted)]
    ends = Counter(event.turn for event in events if isinstance(event.body, facts.TurnEnded))
    yield from (f"turn {turn} has {ends[turn]} ends" for turn in began if ends[turn] != 1)
    fine = ("finished", "interrupted", *(["cancelled"] if cut else []))
    for event in events:
        if isinstance(event.body, facts.TurnEnded) and event.body.outcome not in fine:
            yield f"turn {event.turn} ended as {event.body.outcome}: {event.body.trouble}"


def _check_questions(events: Sequence[Event]) -> Iterator[str]:
    """What was answered is not asked again."""
    asked: dict[str, list[str]] = {}
    answered: set[str] = set()
    for body in (event.body for event in events):
        match body:
            case facts.Asked(id=id):
                asked[id] = question_keys(body)
                if answered.intersection(asked[id]):
                    yield f"asked again after the answer: {body.question}"
            case facts.Answered(id=id):
                answered.update(asked[id])
            case _:
                pass


def _check_messages(look: CrashEvidence, sessions: dict[str, SessionState]) -> Iterator[str]:
    """Every message is there once, and reached one turn."""
    own = [
        event.body
        for id, summary in sessions.items()
        for event in look.session_events(id)
        if event.seq > summary.forked_at
    ]
    received = {body.id + body.key: body for body in own if isinstance(body, facts.InputReceived)}
    count = Counter(body.key for body in received.values())
    yield from (f"message {key} is there {count[key]} times" for key in look.scenario.keys if count[key] != 1)
    begun = sum(isinstance(body, facts.TurnStarted | facts.InputDelivered) for body in own)
    if begun != look.scenario.turns:
        yield f"{look.scenario.turns} messages were said and {begun} reached a turn"


def _check_deliveries(look: CrashEvidence, session: str, summary: SessionState) -> Iterator[str]:
    """Each message to a person is recorded once, confirmed once, and arrived: at the sink a repeat is known."""
    own = [event.body for event in look.session_events(session) if event.seq > summary.forked_at]
    recorded = [body for body in own if isinstance(body, DeliveryRecorded)]
    confirmed = Counter(body.id for body in own if isinstance(body, DeliveryConfirmed))
    yield from (
        f"{id} was recorded {count} times" for id, count in Counter(body.id for body in recorded).items() if count != 1
    )
    for body in recorded:
        if confirmed[body.id] != 1:
            yield f"the delivery {body.id} was confirmed {confirmed[body.id]} times"
        if body.channel != DOOR_CHANNEL and delivery_key(session, body) not in look.sink.kept:
            yield f"the delivery {body.id} never arrived"
    ways = {call: {body.channel for body in recorded if body.call == call} for call in {body.call for body in recorded}}
    yield from (f"{call} was told on {sorted(found)} only" for call, found in ways.items() if len(found) != 2 and call)


def _check_erasure(look: CrashEvidence) -> Iterator[str]:
    """What was erased is nowhere."""
    if not any(isinstance(step, EraseStep) for step in look.scenario.steps):
        return
    kept = [data for (data,) in look.log.query("select data from event union all select bytes from blob", ())]
    if any(SECRET.encode() in data for data in kept):
        yield "the secret is still in the log"


def _collect_calls(look: CrashEvidence, sessions: dict[str, SessionState]) -> CallRecords:
    found = CallRecords()
    for id, summary in sessions.items():
        for event in look.session_events(id)[summary.forked_at :]:
            match event.body:
                case facts.ToolCalled(call=call) as body:
                    found.called[f"{id}.{call}"] = body
                case facts.ToolFinished(call=call) as body:
                    found.finished.setdefault(f"{id}.{call}", []).append(body)
                case _:
                    pass
    return found


def _check_results(calls: CallRecords, *, cut: bool) -> Iterator[str]:
    """One result for each call, and a true one."""
    for call in calls.called:
        if (count := len(calls.finished.get(call, []))) != 1:
            yield f"call {call} has {count} results"
    for called, end in calls.matched_pairs():
        if _is_unknown(end):
            continue
        if cut and (STOPPED_NOTE in end.output or (end.trouble and end.trouble.kind in STOPPED_KINDS)):
            continue
        if end.trouble and end.trouble.kind != "refused":
            yield f"{called.name} {called.call} failed: {end.trouble.message}"
        command = _shell_command(called)
        if called.name == "shell" and (found := NOTED.search(command)) and found[1] != NEVER:
            if end.exit != int(found[2]):
                yield f"{command!r} ended with {found[2]} and the log says {end.exit}"
            if f"said {found[1]}" not in end.output:
                yield f"the output of {command!r} is not there: {end.output!r}"


def _check_effects(look: CrashEvidence, calls: CallRecords) -> Iterator[str]:
    """Each effect once; where its outcome is unknown, at most once."""
    unsure = {
        _effect_name(called) or _find_marker(end.output) for called, end in calls.matched_pairs() if _is_unknown(end)
    }
    seen = Counter(read_lines(look.place.work / "journal")) + look.sink.done
    wanted = [call for reply in look.scenario.lines for call in reply.calls]
    for call in wanted:
        name = _effect_name(facts.ToolCalled(call="", name=call.name, arguments=call.arguments))
        least, most = (0, 0) if name == NEVER else (0, 1) if name in unsure or look.scenario.cut else (1, 1)
        if name and not least <= seen[name] <= most:
            yield f"{call.name} {name} took effect {seen[name]} times"
    for path, content in look.scenario.files.items():
        file = look.place.work / path
        if look.scenario.cut and not file.exists():
            continue
        if not file.is_file() or file.read_text() != content:
            yield f"{path} holds {file.read_text() if file.exists() else 'nothing'!r} and not {content!r}"
    if any(isinstance(step, UndoStep) for step in look.scenario.steps):
        yield from (f"{path.name} is there though it was undone" for path in look.place.work.iterdir())
    if len(calls.called) > len(wanted) or (len(calls.called) < len(wanted) and not look.scenario.cut):
        yield f"{len(wanted)} calls were wanted and {len(calls.called)} made"


def _effect_name(called: facts.ToolCalled) -> str:
    """What a call leaves in the world, by name."""
    arguments = msgspec.json.decode(called.arguments)
    return _find_marker(_shell_command(called)) or str(
        arguments.get("what", "" if called.name != "notify" else arguments["title"])
    )


def _find_marker(text: str) -> str:
    """The mark that a command leaves, if it is one of those."""
    found = MARKED.search(text)
    return found[1] if found else ""


def _shell_command(called: facts.ToolCalled) -> str:
    return str(msgspec.json.decode(called.arguments).get("command", ""))


def _is_unknown(end: facts.ToolFinished) -> bool:
    return LOST_JOB in end.output or (end.trouble is not None and end.trouble.kind == OutcomeUnknown.kind)


def _check_leftovers(place: ScratchFolder) -> Iterator[str]:
    """No process, and no half-written file."""
    deadline = time.monotonic() + PATIENCE
    while (left := _find_processes(str(place.root))) and time.monotonic() < deadline:
        time.sleep(0.01)
    yield from (f"still runs: {each}" for each in left)
    yield from (f"left behind: {path.relative_to(place.work)}" for path in place.work.rglob(".sylph-*"))


def _find_processes(mark: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in command or f"SYLPH_PROVE={mark}".encode() in environ.split(b"\0"):
            found.append(f"{process.name} {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return found
