"""Holds a log against its hash chain, and says exactly what does not fit."""

from typing import NamedTuple

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import UnreadableRecord
from sylph.engine.log.erasure_digests import ErasureDigests
from sylph.engine.log.hash_chain import chain_hash, data_commitment, event_from_record, output_digest
from sylph.engine.log.store import VALID_SEQ, EventLog

PAGE = 2000
MAX_PROBLEMS = 20
LOWEST_SEQ = -(2**63)


class VerificationResult(NamedTuple):
    session: str
    events: int
    problems: tuple[ErrorReport, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify_session(log: EventLog, session: str) -> VerificationResult:
    """Whether all is as it was written. A session that grows meanwhile is looked at once more."""
    while True:
        head = log.head(session)
        found = _walk_chain(log, session)
        if found.ok or log.head(session) == head:
            return found


def _walk_chain(log: EventLog, session: str) -> VerificationResult:
    """Walks the whole chain. A damaged record is one problem, not the end of the walk."""
    problems = _find_unnumbered(log, session)
    before, expected, count = b"", 1, 0
    vouchers = ErasureDigests()
    for _, _, fact in log.find_facts(session, facts.SessionErased, ""):
        vouchers.add(fact)
    after = LOWEST_SEQ
    while page := log.read_records(session, after=after, limit=PAGE):
        after = page[-1].seq
        for record in page:
            if record.seq < 1:
                problems.append(_stray_problem(session, record.seq))
                continue
            if record.seq != expected:
                problems.append(_missing_problem(session, expected, record.seq))
            elif record.hash != chain_hash(before, record, data_commitment(record)) or not vouchers.covers_record(
                record
            ):
                problems.append(_changed_problem(session, record.seq))
            before, expected, count = record.hash, record.seq + 1, count + 1
    head = log.head(session)
    if head.seq != expected - 1 or head.hash != before.hex():
        problems.append(_short_problem(session, head.seq, expected - 1))
    problems += _check_outputs(log, session, vouchers)
    return VerificationResult(session, count, tuple(problems[:MAX_PROBLEMS]))


def _check_outputs(log: EventLog, session: str, vouchers: ErasureDigests) -> list[ErrorReport]:
    """The whole outputs and images that facts refer to, held against the digests in those facts."""
    problems: dict[int, ErrorReport] = {}
    for mark in ('"whole":', '"images":'):
        for seq, _, fact in (
            *log.find_facts(session, facts.ToolFinished, mark),
            *log.find_facts(session, facts.InputReceived, mark),
        ):
            found = ((name, log.load_blob(session, name)) for name in fact.blobs)
            if not all(kept is not None and _matches_digest(name, kept, vouchers) for name, kept in found):
                problems[seq] = _output_problem(session, seq)
    return list(problems.values())


def _matches_digest(name: str, kept: bytes, vouchers: ErasureDigests) -> bool:
    return output_digest(kept) == name or vouchers.covers_output(name, kept)


def _find_unnumbered(log: EventLog, session: str) -> list[ErrorReport]:
    """Rows that somebody gave a number that is none."""
    rows = log.query(f"select cast(seq as text) from event where session = ? and not {VALID_SEQ}", (session,))
    return [_stray_problem(session, seq) for (seq,) in rows]


def find_damaged(log: EventLog, session: str) -> list[ErrorReport]:
    """Records that cannot be read as what they say they are; unknown types are no damage."""
    found: list[ErrorReport] = []
    after = 0
    while page := log.read_records(session, after=after, limit=PAGE):
        for record in page:
            body = event_from_record(record).body
            if isinstance(body, UnreadableRecord) and body.why.startswith("damaged"):
                found.append(ErrorReport("record_damaged", f"Fact {record.seq} of {session}: {body.why}."))
        after = page[-1].seq
    return found


def _missing_problem(session: str, expected: int, found: int) -> ErrorReport:
    which = f"Fact {expected}" if found == expected + 1 else f"Facts {expected} to {found - 1}"
    return ErrorReport("record_missing", f"{which} of {session} cannot be found.", {"session": session})


def _stray_problem(session: str, seq: int | str) -> ErrorReport:
    return ErrorReport("record_added", f"Fact {seq} of {session} has no place in the order.", {"session": session})


def _output_problem(session: str, seq: int) -> ErrorReport:
    return ErrorReport(
        "output_changed",
        f"The whole output or image that fact {seq} of {session} refers to is gone or is not what it was.",
        {"session": session, "seq": str(seq)},
        ("What the model was shown of it is in the fact itself.",),
    )


def _changed_problem(session: str, seq: int) -> ErrorReport:
    return ErrorReport(
        "record_changed",
        f"Fact {seq} of {session} is not what was written, or what stands before it is not.",
        {"session": session, "seq": str(seq)},
        (f"Look at it: `sylph session show {session} --events`.", "Compare with an export or a backup."),
    )


def _short_problem(session: str, says: int, found: int) -> ErrorReport:
    return ErrorReport(
        "end_missing",
        f"The log of {session} should end at fact {says} and ends at {found}.",
        {"session": session},
        ("Compare with an export or a backup.",),
    )
