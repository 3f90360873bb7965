"""Forking: the beginning of a session copied under a new id, with a fact that says where it came from."""

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Fact, LogHead
from sylph.core.ids import new_id
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.log.erasure_digests import ErasureDigests
from sylph.engine.log.export import PAGE, rechain_records
from sylph.engine.log.hash_chain import (
    LogRecord,
    PendingFact,
    event_from_record,
    seal_record,
)
from sylph.engine.log.store import EventLog


async def fork_session(log: EventLog, parent: SessionState, at: int, now: int, id: str = "") -> str:
    """Copies the first `at` facts under a new id and writes down where they came from."""
    child = id or new_id()
    old: list[LogRecord] = []
    while page := log.read_records(parent.id, after=old[-1].seq if old else 0, limit=PAGE):
        old += [record for record in page if record.seq <= at]
        if page[-1].seq >= at:
            break
    names = _blob_digests(old)
    blobs = [(child, name, data) for name in names if (data := log.load_blob(parent.id, name)) is not None]
    records = rechain_records(old, child)
    state = SessionState()
    for record in records:
        SESSION_FOLD.step(state, event_from_record(record))
    for fact in (*_fork_facts(state, parent, at), *_missing_erasures(log, parent.id, records)):
        head = LogHead(records[-1].seq, records[-1].hash.hex())
        records.append(seal_record(child, head, PendingFact(fact, now, state.open_turn, "user", 0)))
    await log.install_records(records, blobs)
    return child


def _fork_facts(state: SessionState, parent: SessionState, at: int) -> list[Fact]:
    """The facts that make a copy a session of its own: nothing that was under way in the parent runs in it."""
    forked: list[Fact] = [facts.SessionForked(parent=parent.id, at=at, root=parent.root or parent.id)]
    if state.open_turn:
        trouble = ErrorReport("forked", "The session was forked in the middle of this turn.")
        forked.append(facts.TurnEnded(outcome="interrupted", rounds=state.rounds, trouble=trouble))
    if state.state != "idle":
        forked.append(facts.StateChanged(to="idle", was=state.state, event="mend"))
    return forked


def _missing_erasures(log: EventLog, parent: str, records: list[LogRecord]) -> list[Fact]:
    """What the parent says of its erased facts, where the copy ends before it says so."""
    own = ErasureDigests.from_events(event_from_record(record) for record in records)
    if all(own.covers_record(record) for record in records):
        return []
    return [body for _, _, body in log.find_facts(parent, facts.SessionErased, "")]


def _blob_digests(records: list[LogRecord]) -> list[str]:
    bodies = (
        event_from_record(record).body for record in records if record.type in ("tool.finished", "input.received")
    )
    held = (body.blobs for body in bodies if isinstance(body, facts.ToolFinished | facts.InputReceived))
    return list(dict.fromkeys(name for names in held for name in names))
