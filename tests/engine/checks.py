"""What must be true of every log, whatever happened: asked of all logs that the engine's tests leave behind."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.messages import Message
from sylph.diagnosis.checks import diagnose_session
from sylph.diagnosis.finding import LiveSessionInfo
from sylph.engine.folds.history import HISTORY_FOLD, ConversationHistory
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.folds.state_machine import STATES, TRIGGERS, ActivityState, next_state
from sylph.engine.log.store import EventLog
from sylph.engine.log.verify import verify_session


def check_home(home: Path) -> None:
    """Every session in `home`: its chain holds and its story makes sense."""
    path = home / "data" / "sylph.db"
    if not path.exists():
        return
    log = EventLog.open(path)
    for session in log.session_ids():
        assert verify_session(log, session).problems == ()
        events = log.read_events(session, limit=1_000_000)
        check_log(events)
        check_diagnosis(session, events, log)
    log.close()


def check_diagnosis(session: str, events: Sequence[Event], log: EventLog) -> None:
    """Whatever happened, nothing is broken: a diagnosis that says so is wrong."""
    kept = {fold.name: log.load_snapshot(session, fold.name, fold.version) for fold in (SESSION_FOLD, HISTORY_FOLD)}
    live = LiveSessionInfo(snapshots={name: found for name, found in kept.items() if found})
    assert [one for one in diagnose_session(session, events, live) if one.state == "fail"] == []


def check_log(events: Sequence[Event]) -> None:
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[0].body, facts.SessionCreated)
    check_states(events)
    check_turns(events)
    check_calls(events)
    check_inputs(events)
    check_questions(events)
    history = ConversationHistory()
    for event in events:
        HISTORY_FOLD.step(history, event)
        check_messages(history.build_messages())


def check_states(events: Iterable[Event]) -> None:
    """Each change starts where the last one ended, and takes an edge that exists."""
    state: ActivityState = "idle"
    for body in (event.body for event in events):
        if isinstance(body, facts.StateChanged):
            assert (body.was, body.event in TRIGGERS, body.to in STATES) == (state, True, True)
            following = next_state(state, next(trigger for trigger in TRIGGERS if trigger == body.event))
            assert following == body.to, body
            state = following or state


def check_turns(events: Iterable[Event]) -> None:
    """One turn at a time, each ends once, and what belongs to it says so."""
    running, begun = "", set[str]()
    for event in events:
        match event.body:
            case facts.TurnStarted():
                assert not running
                assert event.turn not in begun
                running = event.turn
                begun.add(running)
            case facts.TurnEnded():
                assert event.turn == running
                running = ""
            case facts.ToolCalled() | facts.ToolFinished() | facts.ModelResponded(role="main"):
                assert event.turn == running != ""
            case _:
                pass


def check_calls(events: Iterable[Event]) -> None:
    """A call is decided before it starts, starts before it has an effect, and has one result before its turn ends."""
    waiting: dict[str, set[str]] = {}
    known = set[str]()
    for body in (event.body for event in events):
        match body:
            case facts.ToolCalled(call=call):
                assert call not in known
                known.add(call)
                waiting[call] = set()
            case facts.ToolDecided(call=call, decision=decision):
                waiting[call].add(decision)
            case facts.ToolStarted(call=call):
                assert "allow" in waiting[call]
            case facts.ToolFinished(call=call):
                waiting.pop(call)
            case facts.TurnEnded(outcome=outcome):
                assert not waiting or outcome == "interrupted"
                waiting = {}
            case _:
                pass


def check_inputs(events: Iterable[Event]) -> None:
    """A message is received once, and then begins a turn, reaches one, or is taken back: once."""
    waiting, known = set[str](), set[str]()
    for body in (event.body for event in events):
        match body:
            case facts.InputReceived(id=id):
                assert id not in known
                known.add(id)
                waiting.add(id)
            case facts.TurnStarted(input=id) | facts.InputDelivered(id=id) | facts.InputCancelled(id=id):
                waiting.remove(id)
            case facts.SessionForked():
                waiting.clear()
            case _:
                pass


def check_questions(events: Iterable[Event]) -> None:
    waiting, known = set[str](), set[str]()
    for body in (event.body for event in events):
        match body:
            case facts.Asked(id=id):
                assert id not in known
                known.add(id)
                waiting.add(id)
            case facts.Answered(id=id):
                waiting.remove(id)
            case _:
                pass


def check_messages(messages: Iterable[Message]) -> None:
    """Every call has exactly one result, before anybody says anything else."""
    waiting = set[str]()
    for message in messages:
        if message.role == "tool":
            waiting.remove(message.call)
        else:
            assert not waiting
            waiting = {call.id for call in message.calls}
            assert len(waiting) == len(message.calls)
    assert not waiting
