"""The log itself and what stands beside it: the chain, snapshots, jobs, the lock."""

from collections.abc import Iterator

import msgspec

from sylph.core import facts
from sylph.core.errors import Trouble
from sylph.core.events import Carried, Event
from sylph.core.text import count, first_line
from sylph.engine.diagnosis.finding import Case, Finding, places
from sylph.engine.fold import Fold, S
from sylph.engine.history import HISTORY, History
from sylph.engine.summary import SUMMARY

# A clock is corrected by some milliseconds now and then; that is no jump.
JUMP = 1000
# A long turn leaves its snapshots behind until it ends; so many facts take a moment to read again.
BEHIND = 5000


def log(case: Case) -> Iterator[Finding]:
    look = (f"sylph verify {case.session}", case.facts)
    for trouble in case.live.problems:
        seq = trouble.details.get("seq", "")
        evidence = (int(seq),) if seq.isdigit() else ()
        yield Finding("log", "fail", trouble.message, evidence, (*look, *trouble.next))
    unread = [(event, event.body.why) for event in case.events if isinstance(event.body, Carried)]
    damaged = [event for event, why in unread if why.startswith("damaged")]
    strange = [event for event, why in unread if not why.startswith("damaged")]
    if damaged:
        message = f"{count(len(damaged), 'fact')} cannot be read: {', '.join(sorted({e.type for e in damaged}))}."
        yield Finding("log", "fail", message, places(damaged), look)
    if not case.events or not isinstance(case.events[0].body, facts.SessionCreated):
        message = "The first fact, which says where and how the session works, is not there or cannot be read."
        yield Finding("log", "fail", message, (1,), (*look, f"sylph session export {case.session}"))
    if strange:
        message = f"{count(len(strange), 'fact')} of a newer Sylph: carried along, not understood."
        yield Finding("log", "note", message, places(strange), (case.facts,))
    yield from _erasures(case)
    yield from _jumps(case)


def _erasures(case: Case) -> Iterator[Finding]:
    for event in case.events:
        if isinstance(event.body, facts.SessionErased):
            where = f"{count(len(event.body.facts), 'fact')} and {count(len(event.body.blobs), 'output')}"
            message = f"Something was erased on purpose in {where}{f': {event.body.why}' if event.body.why else '.'}"
            yield Finding("log", "note", message, (event.seq,), (f"sylph verify {case.session}",))


def _jumps(case: Case) -> Iterator[Finding]:
    found = [event for before, event in zip(case.events, case.events[1:], strict=False) if event.ts < before.ts - JUMP]
    if found:
        message = (
            f"The machine's clock went back {count(len(found), 'time')}: durations around there are not to be trusted."
        )
        yield Finding("log", "note", message, places(found), (case.facts,))


def snapshots(case: Case) -> Iterator[Finding]:
    """What is kept to open a session faster must say what the log says."""
    yield from _snapshot(case, SUMMARY)
    yield from _snapshot(case, HISTORY)


def _snapshot(case: Case, fold: Fold[S]) -> Iterator[Finding]:
    head = case.events[-1].seq if case.events else 0
    seq, kept = case.live.snapshots.get(fold.name, (0, b""))
    if seq > head:
        message = f"The snapshot {fold.name} stands at fact {seq}, behind the end of the log; it is not used."
        yield Finding("snapshots", "warn", message, (head,), (f"sylph verify {case.session}",))
    elif seq and _differs(fold, [event for event in case.events if event.seq <= seq], kept):
        message = f"The snapshot {fold.name} at fact {seq} is not what the log says. A copy of the session has none."
        yield Finding("snapshots", "fail", message, (seq,), (f"sylph session fork {case.session}",))
    elif seq and head - seq > BEHIND and not case.live.pid:
        message = (
            f"The snapshot {fold.name} is {count(head - seq, 'fact')} old: opening takes longer until the next turn."
        )
        yield Finding("snapshots", "note", message, (seq, head), (f'sylph -s {case.session} "go on"', case.show))


def _differs(fold: Fold[S], events: list[Event], kept: bytes) -> bool:
    try:
        then = msgspec.msgpack.decode(kept, type=fold.state)
    except msgspec.DecodeError:
        # It is thrown away when the session is opened.
        return False
    now = fold.state()
    for event in events:
        fold.step(now, event)
    # A history that was rewound behind a compaction is put together in another way.
    return then != now and not (isinstance(now, History) and now.lost)


def jobs(case: Case) -> Iterator[Finding]:
    ask = f'sylph -s {case.session} "what became of the background jobs?"'
    for job in case.live.jobs:
        named = f"{job.id} ({first_line(job.command, 60)})"
        if job.state == "running":
            yield Finding("jobs", "note", f"{named} runs in the background.", (), (ask,))
        elif job.state == "lost":
            yield Finding("jobs", "warn", f"{named} was lost: its runner died, nobody saw its end.", (), (ask,))


def replay(case: Case) -> Iterator[Finding]:
    """Run again from its log, the session comes out as it was; nothing is said where that was not tried."""
    done, again = case.live.replayed, f"sylph replay {case.session}"
    if isinstance(done, Trouble):
        yield Finding("replay", "note", done.message, (), (again,))
    elif done and done.divergence:
        message = f"Run again, the session comes out differently: {done.divergence.what}"
        yield Finding("replay", "warn", message, (done.divergence.seq,), (again,))
    elif done:
        message = f"{count(done.matched, 'fact')} and {count(done.prompts, 'prompt')} came out byte for byte"
        yield Finding("replay", "ok", message)


def lease(case: Case) -> Iterator[Finding]:
    pid = case.live.pid
    if pid:
        who = f"Process {pid}" if pid > 0 else "A process that cannot be told"
        steps = ("sylph status", f"sylph session fork {case.session}")
        yield Finding("lease", "note", f"{who} works on this session; others can look and fork.", (), steps)
    elif case.live.left:
        message = "A process that died left its lock behind. It locks nothing; the next one takes it."
        yield Finding("lease", "note", message, (), (case.resume,))
