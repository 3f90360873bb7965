"""The log itself and what stands beside it: the chain, snapshots, jobs, the lock."""

from collections.abc import Iterator

import msgspec

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Event, UnreadableRecord
from sylph.core.text.formatting import count_noun, first_line
from sylph.diagnosis.finding import DiagnosisCase, DiagnosisFinding, event_seqs
from sylph.engine.folds.fold import Fold, S
from sylph.engine.folds.history import HISTORY_FOLD, ConversationHistory
from sylph.engine.folds.session_state import SESSION_FOLD

# A clock is corrected by some milliseconds now and then; that is no jump.
CLOCK_JUMP_MS = 1000
# A long turn leaves its snapshots behind until it ends; so many facts take a moment to read again.
STALE_SNAPSHOT_FACTS = 5000


def check_log(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    look = (f"sylph verify {case.session}", case.events_command)
    for trouble in case.live.problems:
        seq = trouble.details.get("seq", "")
        evidence = (int(seq),) if seq.isdigit() else ()
        yield DiagnosisFinding("log", "fail", trouble.message, evidence, (*look, *trouble.next))
    unread = [(event, event.body.why) for event in case.events if isinstance(event.body, UnreadableRecord)]
    damaged = [event for event, why in unread if why.startswith("damaged")]
    strange = [event for event, why in unread if not why.startswith("damaged")]
    if damaged:
        message = f"{count_noun(len(damaged), 'fact')} cannot be read: {', '.join(sorted({e.type for e in damaged}))}."
        yield DiagnosisFinding("log", "fail", message, event_seqs(damaged), look)
    if not case.events or not isinstance(case.events[0].body, facts.SessionCreated):
        message = "The first fact, which says where and how the session works, is not there or cannot be read."
        yield DiagnosisFinding("log", "fail", message, (1,), (*look, f"sylph session export {case.session}"))
    if strange:
        message = f"{count_noun(len(strange), 'fact')} of a newer Sylph: carried along, not understood."
        yield DiagnosisFinding("log", "note", message, event_seqs(strange), (case.events_command,))
    yield from _find_erasures(case)
    yield from _find_clock_jumps(case)


def _find_erasures(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    for event in case.events:
        if isinstance(event.body, facts.SessionErased):
            where = f"{count_noun(len(event.body.facts), 'fact')} and {count_noun(len(event.body.blobs), 'output')}"
            message = f"Something was erased on purpose in {where}{f': {event.body.why}' if event.body.why else '.'}"
            yield DiagnosisFinding("log", "note", message, (event.seq,), (f"sylph verify {case.session}",))


def _find_clock_jumps(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    found = [
        event
        for before, event in zip(case.events, case.events[1:], strict=False)
        if event.ts < before.ts - CLOCK_JUMP_MS
    ]
    if found:
        message = (
            f"The machine's clock went back {count_noun(len(found), 'time')}: "
            f"durations around there are not to be trusted."
        )
        yield DiagnosisFinding("log", "note", message, event_seqs(found), (case.events_command,))


def check_snapshots(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    """What is kept to open a session faster must say what the log says."""
    yield from _check_snapshot(case, SESSION_FOLD)
    yield from _check_snapshot(case, HISTORY_FOLD)


def _check_snapshot(case: DiagnosisCase, fold: Fold[S]) -> Iterator[DiagnosisFinding]:
    head = case.events[-1].seq if case.events else 0
    seq, kept = case.live.snapshots.get(fold.name, (0, b""))
    if seq > head:
        message = f"The snapshot {fold.name} stands at fact {seq}, behind the end of the log; it is not used."
        yield DiagnosisFinding("snapshots", "warn", message, (head,), (f"sylph verify {case.session}",))
    elif seq and _snapshot_differs(fold, [event for event in case.events if event.seq <= seq], kept):
        message = f"The snapshot {fold.name} at fact {seq} is not what the log says. A copy of the session has none."
        yield DiagnosisFinding("snapshots", "fail", message, (seq,), (f"sylph session fork {case.session}",))
    elif seq and head - seq > STALE_SNAPSHOT_FACTS and not case.live.pid:
        message = (
            f"The snapshot {fold.name} is {count_noun(head - seq, 'fact')} old: "
            f"opening takes longer until the next turn."
        )
        yield DiagnosisFinding(
            "snapshots", "note", message, (seq, head), (f'sylph -s {case.session} "go on"', case.show_command)
        )


def _snapshot_differs(fold: Fold[S], events: list[Event], kept: bytes) -> bool:
    try:
        then = msgspec.msgpack.decode(kept, type=fold.state)
    except msgspec.DecodeError:
        # It is thrown away when the session is opened.
        return False
    now = fold.state()
    for event in events:
        fold.step(now, event)
    # A history that was rewound behind a compaction is put together in another way.
    return then != now and not (isinstance(now, ConversationHistory) and now.lost)


def check_jobs(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    ask = f'sylph -s {case.session} "what became of the background jobs?"'
    for job in case.live.jobs:
        named = f"{job.id} ({first_line(job.command, 60)})"
        if job.state == "running":
            yield DiagnosisFinding("jobs", "note", f"{named} runs in the background.", (), (ask,))
        elif job.state == "lost":
            yield DiagnosisFinding(
                "jobs", "warn", f"{named} was lost: its runner died, nobody saw its end.", (), (ask,)
            )


def check_replay(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    """Run again from its log, the session comes out as it was; nothing is said where that was not tried."""
    done, again = case.live.replayed, f"sylph replay {case.session}"
    if isinstance(done, ErrorReport):
        yield DiagnosisFinding("replay", "note", done.message, (), (again,))
    elif done and done.divergence:
        message = f"Run again, the session comes out differently: {done.divergence.what}"
        yield DiagnosisFinding("replay", "warn", message, (done.divergence.seq,), (again,))
    elif done:
        message = f"{count_noun(done.matched, 'fact')} and {count_noun(done.prompts, 'prompt')} came out byte for byte"
        yield DiagnosisFinding("replay", "ok", message)


def check_lease(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    pid = case.live.pid
    if pid:
        who = f"Process {pid}" if pid > 0 else "A process that cannot be told"
        steps = ("sylph status", f"sylph session fork {case.session}")
        yield DiagnosisFinding("lease", "note", f"{who} works on this session; others can look and fork.", (), steps)
    elif case.live.stale_lock:
        message = "A process that died left its lock behind. It locks nothing; the next one takes it."
        yield DiagnosisFinding("lease", "note", message, (), (case.resume_command,))
