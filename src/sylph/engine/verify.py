"""Holds a log against its hash chain, and says exactly what does not fit."""

from typing import NamedTuple

from sylph.core import facts
from sylph.core.errors import Trouble
from sylph.core.events import Carried
from sylph.engine.log import COUNTED, Log
from sylph.engine.seal import committed, event_of, link
from sylph.engine.shape import output_digest
from sylph.engine.vouchers import Vouchers

PAGE = 2000
MOST = 20
BEFORE_ALL = -(2**63)


class Verified(NamedTuple):
    session: str
    events: int
    problems: tuple[Trouble, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(log: Log, session: str) -> Verified:
    """Whether all is as it was written. A session that grows meanwhile is looked at once more."""
    while True:
        head = log.head(session)
        found = _walk(log, session)
        if found.ok or log.head(session) == head:
            return found


def _walk(log: Log, session: str) -> Verified:
    """Walks the whole chain. A damaged record is one problem, not the end of the walk."""
    problems = _uncounted(log, session)
    before, expected, count = b"", 1, 0
    vouchers = Vouchers()
    for _, _, fact in log.find(session, facts.SessionErased, ""):
        vouchers.add(fact)
    after = BEFORE_ALL
    while page := log.records(session, after=after, limit=PAGE):
        after = page[-1].seq
        for record in page:
            if record.seq < 1:
                problems.append(_stray(session, record.seq))
                continue
            if record.seq != expected:
                problems.append(_missing(session, expected, record.seq))
            elif record.hash != link(before, record, committed(record)) or not vouchers.holds(record):
                problems.append(_changed(session, record.seq))
            before, expected, count = record.hash, record.seq + 1, count + 1
    head = log.head(session)
    if head.seq != expected - 1 or head.hash != before.hex():
        problems.append(_short(session, head.seq, expected - 1))
    problems += _outputs(log, session, vouchers)
    return Verified(session, count, tuple(problems[:MOST]))


def _outputs(log: Log, session: str, vouchers: Vouchers) -> list[Trouble]:
    """The whole outputs and images that facts refer to, held against the digests in those facts."""
    problems: dict[int, Trouble] = {}
    for mark in ('"whole":', '"images":'):
        for seq, _, fact in (
            *log.find(session, facts.ToolFinished, mark),
            *log.find(session, facts.InputReceived, mark),
        ):
            found = ((name, log.blob(session, name)) for name in fact.blobs)
            if not all(kept is not None and _is(name, kept, vouchers) for name, kept in found):
                problems[seq] = _output(session, seq)
    return list(problems.values())


def _is(name: str, kept: bytes, vouchers: Vouchers) -> bool:
    return output_digest(kept) == name or vouchers.output(name, kept)


def _uncounted(log: Log, session: str) -> list[Trouble]:
    """Rows that somebody gave a number that is none."""
    rows = log.query(f"select cast(seq as text) from event where session = ? and not {COUNTED}", (session,))
    return [_stray(session, seq) for (seq,) in rows]


def damaged(log: Log, session: str) -> list[Trouble]:
    """Records that cannot be read as what they say they are; unknown types are no damage."""
    found: list[Trouble] = []
    after = 0
    while page := log.records(session, after=after, limit=PAGE):
        for record in page:
            body = event_of(record).body
            if isinstance(body, Carried) and body.why.startswith("damaged"):
                found.append(Trouble("record_damaged", f"Fact {record.seq} of {session}: {body.why}."))
        after = page[-1].seq
    return found


def _missing(session: str, expected: int, found: int) -> Trouble:
    which = f"Fact {expected}" if found == expected + 1 else f"Facts {expected} to {found - 1}"
    return Trouble("record_missing", f"{which} of {session} cannot be found.", {"session": session})


def _stray(session: str, seq: int | str) -> Trouble:
    return Trouble("record_added", f"Fact {seq} of {session} has no place in the order.", {"session": session})


def _output(session: str, seq: int) -> Trouble:
    return Trouble(
        "output_changed",
        f"The whole output or image that fact {seq} of {session} refers to is gone or is not what it was.",
        {"session": session, "seq": str(seq)},
        ("What the model was shown of it is in the fact itself.",),
    )


def _changed(session: str, seq: int) -> Trouble:
    return Trouble(
        "record_changed",
        f"Fact {seq} of {session} is not what was written, or what stands before it is not.",
        {"session": session, "seq": str(seq)},
        (f"Look at it: `sylph session show {session} --events`.", "Compare with an export or a backup."),
    )


def _short(session: str, says: int, found: int) -> Trouble:
    return Trouble(
        "end_missing",
        f"The log of {session} should end at fact {says} and ends at {found}.",
        {"session": session},
        ("Compare with an export or a backup.",),
    )
