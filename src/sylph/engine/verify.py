"""Holds a log against its hash chain, and says exactly what does not fit."""

from typing import NamedTuple

from sylph.core.errors import Trouble
from sylph.core.events import Carried
from sylph.engine.log import Log
from sylph.engine.seal import digest, event_of, link

PAGE = 2000
MOST = 20


class Verified(NamedTuple):
    session: str
    events: int
    problems: tuple[Trouble, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(log: Log, session: str) -> Verified:
    """Walks the whole chain. A damaged record is one problem, not the end of the walk."""
    problems: list[Trouble] = []
    before, expected, count = b"", 1, 0
    while page := log.records(session, after=expected - 1, limit=PAGE):
        for record in page:
            if record.seq != expected:
                problems.append(_missing(session, expected, record.seq))
            elif record.hash != link(before, record, digest(record.salt, record.data)):
                problems.append(_changed(session, record.seq))
            before, expected, count = record.hash, record.seq + 1, count + 1
    head = log.head(session)
    if head.seq != expected - 1 or head.hash != before.hex():
        problems.append(_short(session, head.seq, expected - 1))
    return Verified(session, count, tuple(problems[:MOST]))


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
