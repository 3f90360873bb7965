"""What must be so after a crash and a recovery, wherever the crash was."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.budget import BudgetWarned
from sylph.core.deliveries import DOOR, DeliveryConfirmed, DeliveryRecorded, key_of
from sylph.core.errors import Unknown
from sylph.core.events import Event
from sylph.engine import fold
from sylph.engine.budget.audit import audit
from sylph.engine.budget.store import Store
from sylph.engine.log import Log
from sylph.engine.summary import SUMMARY, Summary, question_keys
from sylph.engine.verify import verify
from sylph.prove.outside import Sink
from sylph.prove.place import Place, lines
from sylph.prove.scenarios import MARKED, NEVER, NOTED, SECRET, Forget, Scenario, TakeBack

PATIENCE = 3.0
# What is said of a background job whose end nobody saw.
LOST = "lost: its runner died"
# What the result of a call says that was stopped on purpose.
CUT = ("cancelled", "no_effect")
STOPPED = "[stopped]"


class Calls(Struct):
    """What the log says of every call."""

    called: dict[str, facts.ToolCalled] = field(default_factory=dict[str, facts.ToolCalled])
    finished: dict[str, list[facts.ToolFinished]] = field(default_factory=dict[str, list[facts.ToolFinished]])

    @property
    def unknown(self) -> list[str]:
        return [call for call, ends in self.finished.items() if any(_unknown(end) for end in ends)]

    def pairs(self) -> Iterator[tuple[facts.ToolCalled, facts.ToolFinished]]:
        return ((called, end) for call, called in self.called.items() for end in self.finished.get(call, []))


class Look(Struct, frozen=True):
    """All there is to look at."""

    scenario: Scenario
    place: Place
    sink: Sink
    log: Log
    may_be_unknown: bool

    def events(self, session: str) -> list[Event]:
        return self.log.read(session, limit=1_000_000)


def check(look: Look) -> tuple[list[str], int]:
    """Everything that is not as it must be, and how many outcomes are unknown."""
    problems = [*_promises(look), *_store(look), *_leftovers(look.place), *_secrets(look)]
    sessions = {id: fold.load(look.log, id, SUMMARY)[0] for id in look.log.sessions()}
    calls = _calls(look, sessions)
    for id, summary in sessions.items():
        problems += _rest(summary)
        problems += _turns(look.events(id), cut=look.scenario.cut)
        problems += _questions(look.events(id))
        problems += _deliveries(look, id, summary)
    problems += _messages(look, sessions)
    problems += _spending(look)
    problems += _results(calls, cut=look.scenario.cut)
    problems += _effects(look, calls)
    if calls.unknown and not look.may_be_unknown:
        problems += [f"the outcome of {call} is unknown, though it can be known" for call in calls.unknown]
    return problems, len(calls.unknown)


def _promises(look: Look) -> Iterator[str]:
    """No acknowledged input is lost, and a replay gives the same again."""
    yield from (f"acknowledged and lost: {each}" for each in lines(look.place.lost))
    yield from (f"replays differently: {each}" for each in lines(look.place.diverged))


def _store(look: Look) -> Iterator[str]:
    yield from (f"store: {trouble.message}" for trouble in look.log.integrity())
    for id in look.log.traces():
        yield from (f"chain: {trouble.message}" for trouble in verify(look.log, id).problems)


def _spending(look: Look) -> Iterator[str]:
    """Every request is answered, failed or put aside for good; and the sums of the purse are those of the log."""
    if look.scenario.budget is None:
        return
    data = look.place.store.parent
    found = audit(data, look.place.store)
    if found and (found.differ or found.damaged):
        yield f"the purse does not agree with the log: {found}"
    with contextlib.closing(Store(data, look.place.store)) as store:
        left = [hold for hold in store.holds() if store.fate(hold) == "unknown"]
    for id in look.log.sessions():
        asked = len(look.log.find(id, facts.ModelRequested))
        ends = len(look.log.find(id, facts.ModelResponded)) + len(look.log.find(id, facts.ModelFailed))
        held = sum(hold.who.session == id for hold in left)
        if asked != ends + held:
            yield f"{asked} requests, {ends} ends, {held} put aside"
        if len(look.log.find(id, BudgetWarned)) > 1:
            yield "warned twice"


def _rest(summary: Summary) -> Iterator[str]:
    """Nothing is left open."""
    if summary.state != "idle":
        yield f"the session is {summary.state}"
    for what in ("open_turn", "queue", "open_calls", "asked", "undoing", "outbox"):
        if left := getattr(summary, what):
            yield f"{what} is left: {left}"


def _turns(events: Sequence[Event], *, cut: bool) -> Iterator[str]:
    """Exactly one end for each turn."""
    began = [event.turn for event in events if isinstance(event.body, facts.TurnStarted)]
    ends = Counter(event.turn for event in events if isinstance(event.body, facts.TurnEnded))
    yield from (f"turn {turn} has {ends[turn]} ends" for turn in began if ends[turn] != 1)
    fine = ("finished", "interrupted", *(["cancelled"] if cut else []))
    for event in events:
        if isinstance(event.body, facts.TurnEnded) and event.body.outcome not in fine:
            yield f"turn {event.turn} ended as {event.body.outcome}: {event.body.trouble}"


def _questions(events: Sequence[Event]) -> Iterator[str]:
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


def _messages(look: Look, sessions: dict[str, Summary]) -> Iterator[str]:
    """Every message is there once, and reached one turn."""
    own = [event.body for id, summary in sessions.items() for event in look.events(id) if event.seq > summary.forked_at]
    received = {body.id + body.key: body for body in own if isinstance(body, facts.InputReceived)}
    count = Counter(body.key for body in received.values())
    yield from (f"message {key} is there {count[key]} times" for key in look.scenario.keys if count[key] != 1)
    begun = sum(isinstance(body, facts.TurnStarted | facts.InputDelivered) for body in own)
    if begun != look.scenario.turns:
        yield f"{look.scenario.turns} messages were said and {begun} reached a turn"


def _deliveries(look: Look, session: str, summary: Summary) -> Iterator[str]:
    """Each message to a person is recorded once, confirmed once, and arrived: at the sink a repeat is known."""
    own = [event.body for event in look.events(session) if event.seq > summary.forked_at]
    recorded = [body for body in own if isinstance(body, DeliveryRecorded)]
    confirmed = Counter(body.id for body in own if isinstance(body, DeliveryConfirmed))
    yield from (
        f"{id} was recorded {count} times" for id, count in Counter(body.id for body in recorded).items() if count != 1
    )
    for body in recorded:
        if confirmed[body.id] != 1:
            yield f"the delivery {body.id} was confirmed {confirmed[body.id]} times"
        if body.channel != DOOR and key_of(session, body) not in look.sink.kept:
            yield f"the delivery {body.id} never arrived"
    ways = {call: {body.channel for body in recorded if body.call == call} for call in {body.call for body in recorded}}
    yield from (f"{call} was told on {sorted(found)} only" for call, found in ways.items() if len(found) != 2 and call)


def _secrets(look: Look) -> Iterator[str]:
    """What was erased is nowhere."""
    if not any(isinstance(step, Forget) for step in look.scenario.steps):
        return
    kept = [data for (data,) in look.log.query("select data from event union all select bytes from blob", ())]
    if any(SECRET.encode() in data for data in kept):
        yield "the secret is still in the log"


def _calls(look: Look, sessions: dict[str, Summary]) -> Calls:
    found = Calls()
    for id, summary in sessions.items():
        for event in look.events(id)[summary.forked_at :]:
            match event.body:
                case facts.ToolCalled(call=call) as body:
                    found.called[f"{id}.{call}"] = body
                case facts.ToolFinished(call=call) as body:
                    found.finished.setdefault(f"{id}.{call}", []).append(body)
                case _:
                    pass
    return found


def _results(calls: Calls, *, cut: bool) -> Iterator[str]:
    """One result for each call, and a true one."""
    for call in calls.called:
        if (count := len(calls.finished.get(call, []))) != 1:
            yield f"call {call} has {count} results"
    for called, end in calls.pairs():
        if _unknown(end):
            continue
        if cut and (STOPPED in end.output or (end.trouble and end.trouble.kind in CUT)):
            continue
        if end.trouble and end.trouble.kind != "refused":
            yield f"{called.name} {called.call} failed: {end.trouble.message}"
        command = _command(called)
        if called.name == "shell" and (found := NOTED.search(command)) and found[1] != NEVER:
            if end.exit != int(found[2]):
                yield f"{command!r} ended with {found[2]} and the log says {end.exit}"
            if f"said {found[1]}" not in end.output:
                yield f"the output of {command!r} is not there: {end.output!r}"


def _effects(look: Look, calls: Calls) -> Iterator[str]:
    """Each effect once; where its outcome is unknown, at most once."""
    unsure = {_effect(called) or _marked(end.output) for called, end in calls.pairs() if _unknown(end)}
    seen = Counter(lines(look.place.work / "journal")) + look.sink.done
    wanted = [call for reply in look.scenario.lines for call in reply.calls]
    for call in wanted:
        name = _effect(facts.ToolCalled(call="", name=call.name, arguments=call.arguments))
        least, most = (0, 0) if name == NEVER else (0, 1) if name in unsure or look.scenario.cut else (1, 1)
        if name and not least <= seen[name] <= most:
            yield f"{call.name} {name} took effect {seen[name]} times"
    for path, content in look.scenario.files.items():
        file = look.place.work / path
        if look.scenario.cut and not file.exists():
            continue
        if not file.is_file() or file.read_text() != content:
            yield f"{path} holds {file.read_text() if file.exists() else 'nothing'!r} and not {content!r}"
    if any(isinstance(step, TakeBack) for step in look.scenario.steps):
        yield from (f"{path.name} is there though it was undone" for path in look.place.work.iterdir())
    if len(calls.called) > len(wanted) or (len(calls.called) < len(wanted) and not look.scenario.cut):
        yield f"{len(wanted)} calls were wanted and {len(calls.called)} made"


def _effect(called: facts.ToolCalled) -> str:
    """What a call leaves in the world, by name."""
    arguments = msgspec.json.decode(called.arguments)
    return _marked(_command(called)) or str(
        arguments.get("what", "" if called.name != "notify" else arguments["title"])
    )


def _marked(text: str) -> str:
    """The mark that a command leaves, if it is one of those."""
    found = MARKED.search(text)
    return found[1] if found else ""


def _command(called: facts.ToolCalled) -> str:
    return str(msgspec.json.decode(called.arguments).get("command", ""))


def _unknown(end: facts.ToolFinished) -> bool:
    return LOST in end.output or (end.trouble is not None and end.trouble.kind == Unknown.kind)


def _leftovers(place: Place) -> Iterator[str]:
    """No process, and no half-written file."""
    deadline = time.monotonic() + PATIENCE
    while (left := _processes(str(place.root))) and time.monotonic() < deadline:
        time.sleep(0.01)
    yield from (f"still runs: {each}" for each in left)
    yield from (f"left behind: {path.relative_to(place.work)}" for path in place.work.rglob(".sylph-*"))


def _processes(mark: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in command or f"SYLPH_PROVE={mark}".encode() in environ.split(b"\0"):
            found.append(f"{process.name} {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return found
