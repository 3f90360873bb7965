"""A session as NDJSON lines, out and in, without loss: records keep their bytes, their salt and their hash."""

import base64
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import NamedTuple

import msgspec

from sylph.core import facts
from sylph.core.errors import StoreError, Trouble, UserError
from sylph.core.events import Fact, Head
from sylph.core.ids import new_id
from sylph.engine.log import Log
from sylph.engine.seal import Draft, Record, digest, event_of, link
from sylph.engine.summary import SUMMARY, Summary

FORMAT = "sylph.session"
PAGE = 500


class _Header(msgspec.Struct, tag_field="kind", tag="header", kw_only=True):
    format: str
    version: int
    session: str
    events: int


class _Line(msgspec.Struct, tag_field="kind", tag="event", kw_only=True):
    """`data` stands last, so that a reader in any language can cut its raw bytes out."""

    v: int
    session: str
    seq: int
    turn: str
    ts: int
    type: str
    actor: str
    cause: int
    salt: str
    hash: str
    raw: str | None = None
    data: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class _Blob(msgspec.Struct, tag_field="kind", tag="blob", kw_only=True):
    session: str
    digest: str
    base64: str


class Imported(NamedTuple):
    session: str
    events: int
    blobs: int
    known: bool = False


async def export(log: Log, session: str) -> AsyncGenerator[bytes, None]:
    """A header, every record in order, then the whole outputs they refer to."""
    head = log.head(session)
    yield msgspec.json.encode(_Header(format=FORMAT, version=1, session=session, events=head.seq)) + b"\n"
    after = 0
    while page := log.records(session, after=after, limit=PAGE):
        for record in page:
            yield msgspec.json.encode(_line(record)) + b"\n"
        after = page[-1].seq
    for name, data in log.query("select digest, bytes from blob where session = ? order by digest", (session,)):
        blob = _Blob(session=session, digest=name, base64=base64.b64encode(data).decode())
        yield msgspec.json.encode(blob) + b"\n"


def _line(record: Record) -> _Line:
    whole = _is_json(record.data)
    return _Line(
        v=record.v,
        session=record.session,
        seq=record.seq,
        turn=record.turn,
        ts=record.ts,
        type=record.type,
        actor=record.actor,
        cause=record.cause,
        salt=record.salt.hex(),
        hash=record.hash.hex(),
        raw=None if whole else base64.b64encode(record.data).decode(),
        data=msgspec.Raw(record.data if whole else b"null"),
    )


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return b"\n" not in data


async def import_(log: Log, lines: Iterable[bytes], *, fresh: bool = False) -> Imported:
    """Brings a session in, whole or not at all. `fresh` gives it a new id, and so a chain of its own."""
    records, blobs = parse(lines)
    session = records[0].session
    check(records)
    here = log.head(session)
    if fresh:
        session = new_id()
        records = _renamed(records, session)
        blobs = [(session, name, data) for _, name, data in blobs]
    elif here.seq:
        return _known(session, records, len(blobs), here)
    await log.install(records, blobs)
    return Imported(session, len(records), len(blobs))


async def fork(log: Log, parent: Summary, at: int, now: int) -> str:
    """Copies the first `at` facts under a new id and writes down where they came from."""
    child = new_id()
    old: list[Record] = []
    while page := log.records(parent.id, after=old[-1].seq if old else 0, limit=PAGE):
        old += [record for record in page if record.seq <= at]
        if page[-1].seq >= at:
            break
    names = _mentioned(old)
    blobs = [(child, name, data) for name in names if (data := log.blob(parent.id, name)) is not None]
    await log.install(_renamed(old, child), blobs)
    drafts = [Draft(fact, now, old[-1].turn, "user", 0) for fact in _branch(parent, at, old)]
    await log.append(child, drafts, expected=at).done
    return child


def _branch(parent: Summary, at: int, old: list[Record]) -> list[Fact]:
    """The facts that make a copy a session of its own: nothing that was under way in the parent runs in it."""
    state = Summary()
    for record in old:
        SUMMARY.step(state, event_of(record))
    forked: list[Fact] = [facts.SessionForked(parent=parent.id, at=at, root=parent.root or parent.id)]
    if state.open_turn:
        trouble = Trouble("forked", "The session was forked in the middle of this turn.")
        forked.append(facts.TurnEnded(outcome="interrupted", rounds=state.rounds, trouble=trouble))
    if state.state != "idle":
        forked.append(facts.StateChanged(to="idle", was=state.state, event="close"))
    return forked


def _mentioned(records: list[Record]) -> list[str]:
    finished = (event_of(record).body for record in records if record.type == "tool.finished")
    return [body.whole for body in finished if isinstance(body, facts.ToolFinished) and body.whole]


def parse(lines: Iterable[bytes]) -> tuple[list[Record], list[tuple[str, str, bytes]]]:
    decoder = msgspec.json.Decoder(_Header | _Line | _Blob)
    records: list[Record] = []
    blobs: list[tuple[str, str, bytes]] = []
    for number, line in _numbered(lines):
        try:
            match decoder.decode(line):
                case _Line() as item:
                    records.append(_record(item))
                case _Blob(session=session, digest=name, base64=text):
                    blobs.append((session, name, base64.b64decode(text, validate=True)))
                case _Header(version=version) if version > 1:
                    raise _unreadable(number, f"it is of version {version}; this Sylph reads version 1")
                case _:
                    pass
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise _unreadable(number, str(error)) from error
    if not records:
        raise UserError(
            "There is no session in that file.", kind="not_an_export", next=["Give a `sylph session export`."]
        )
    return records, blobs


def check(records: list[Record]) -> None:
    """Refuses a file whose chain does not hold: what comes in must be what went out."""
    before = b""
    for number, record in enumerate(records, start=1):
        expected = link(before, record, digest(record.salt, record.data))
        if record.seq != number or record.session != records[0].session or record.hash != expected:
            raise StoreError(
                f"Fact {number} of the file does not follow from the one before: something was changed or is missing.",
                kind="chain_broken",
                details={"seq": record.seq},
                next=["Export the session again from where it came."],
            )
        before = record.hash


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _record(line: _Line) -> Record:
    data = base64.b64decode(line.raw, validate=True) if line.raw is not None else bytes(line.data)
    return Record(
        line.session, line.seq, line.v, line.turn, line.ts, line.type, line.actor, line.cause,
        data, bytes.fromhex(line.salt), bytes.fromhex(line.hash),
    )  # fmt: skip


def _renamed(records: list[Record], session: str) -> list[Record]:
    before, renamed = b"", list[Record]()
    for record in records:
        moved = record._replace(session=session)
        moved = moved._replace(hash=link(before, moved, digest(moved.salt, moved.data)))
        renamed.append(moved)
        before = moved.hash
    return renamed


def _known(session: str, records: list[Record], blobs: int, here: Head) -> Imported:
    if here.hash == records[-1].hash.hex():
        return Imported(session, len(records), blobs, known=True)
    raise UserError(
        f"There is already a different session {session} here.",
        kind="exists",
        next=["Bring it in under a new id with `--new-id`."],
    )


def _unreadable(number: int, why: str) -> UserError:
    return UserError(f"Line {number} cannot be read: {why}.", kind="not_an_export", details={"line": number})
