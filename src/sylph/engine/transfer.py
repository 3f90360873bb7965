"""A session as NDJSON lines, out and in, without loss: records keep their bytes, their salt and their hash."""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import NamedTuple

import msgspec

from sylph.core import facts
from sylph.core.errors import StoreError, Trouble, UserError
from sylph.core.events import Fact, Head
from sylph.core.ids import new_id
from sylph.engine.log import Log
from sylph.engine.seal import Draft, Record, committed, event_of, link, seal
from sylph.engine.shape import output_digest
from sylph.engine.summary import SUMMARY, Summary
from sylph.engine.vouchers import Vouchers

FORMAT = "sylph.session"
AGAIN = ("Export the session again from where it came.",)
# Ids become names of files.
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
PAGE = 500


class _Header(msgspec.Struct, tag_field="kind", tag="header", kw_only=True):
    format: str
    version: int
    session: str
    events: int
    blobs: int = 0


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
    blobs = log.query("select digest from blob where session = ? order by digest", (session,))
    header = _Header(format=FORMAT, version=1, session=session, events=head.seq, blobs=len(blobs))
    yield msgspec.json.encode(header) + b"\n"
    after = 0
    while after < head.seq and (page := log.records(session, after=after, limit=min(PAGE, head.seq - after))):
        for record in page:
            yield msgspec.json.encode(_line(record)) + b"\n"
        after = page[-1].seq
    for (name,) in blobs:
        # One at a time: together they may be more than there is memory for.
        data = log.blob(session, name) or b""
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
    return b"\n" not in data and data == data.strip()


async def import_(log: Log, lines: Iterable[bytes], *, fresh: bool = False, id: str = "") -> Imported:
    """Brings a session in, whole or not at all. `fresh` gives it a new id, and so a chain of its own."""
    records, blobs = await asyncio.to_thread(_read, lines)
    session = records[0].session
    here = log.head(session)
    if fresh:
        session = id or new_id()
        if log.head(session).seq:
            return Imported(session, len(records), len(blobs), known=True)
        records = _renamed(records, session)
        blobs = [(session, name, data) for _, name, data in blobs]
    elif here.seq:
        return _known(session, records, len(blobs), here)
    await log.install(records, blobs)
    return Imported(session, len(records), len(blobs))


def _read(lines: Iterable[bytes]) -> tuple[list[Record], list[tuple[str, str, bytes]]]:
    records, blobs = parse(lines)
    check(records, blobs)
    return records, blobs


async def fork(log: Log, parent: Summary, at: int, now: int, id: str = "") -> str:
    """Copies the first `at` facts under a new id and writes down where they came from."""
    child = id or new_id()
    old: list[Record] = []
    while page := log.records(parent.id, after=old[-1].seq if old else 0, limit=PAGE):
        old += [record for record in page if record.seq <= at]
        if page[-1].seq >= at:
            break
    names = _mentioned(old)
    blobs = [(child, name, data) for name in names if (data := log.blob(parent.id, name)) is not None]
    records = _renamed(old, child)
    state = Summary()
    for record in records:
        SUMMARY.step(state, event_of(record))
    for fact in (*_branch(state, parent, at), *_unvouched(log, parent.id, records)):
        head = Head(records[-1].seq, records[-1].hash.hex())
        records.append(seal(child, head, Draft(fact, now, state.open_turn, "user", 0)))
    await log.install(records, blobs)
    return child


def _branch(state: Summary, parent: Summary, at: int) -> list[Fact]:
    """The facts that make a copy a session of its own: nothing that was under way in the parent runs in it."""
    forked: list[Fact] = [facts.SessionForked(parent=parent.id, at=at, root=parent.root or parent.id)]
    if state.open_turn:
        trouble = Trouble("forked", "The session was forked in the middle of this turn.")
        forked.append(facts.TurnEnded(outcome="interrupted", rounds=state.rounds, trouble=trouble))
    if state.state != "idle":
        forked.append(facts.StateChanged(to="idle", was=state.state, event="mend"))
    return forked


def _unvouched(log: Log, parent: str, records: list[Record]) -> list[Fact]:
    """What the parent says of its erased facts, where the copy ends before it says so."""
    own = Vouchers.of(event_of(record) for record in records)
    if all(own.holds(record) for record in records):
        return []
    return [body for _, _, body in log.find(parent, facts.SessionErased, "")]


def _mentioned(records: list[Record]) -> list[str]:
    bodies = (event_of(record).body for record in records if record.type in ("tool.finished", "input.received"))
    held = (body.blobs for body in bodies if isinstance(body, facts.ToolFinished | facts.InputReceived))
    return list(dict.fromkeys(name for names in held for name in names))


def parse(lines: Iterable[bytes]) -> tuple[list[Record], list[tuple[str, str, bytes]]]:
    decoder = msgspec.json.Decoder(_Header | _Line | _Blob)
    records: list[Record] = []
    blobs: list[tuple[str, str, bytes]] = []
    announced = (-1, -1)
    for number, line in _numbered(lines):
        try:
            match decoder.decode(line):
                case _Line() as item:
                    records.append(_record(item))
                case _Blob(session=session, digest=name, base64=text):
                    blobs.append((session, name, base64.b64decode(text, validate=True)))
                case _Header(version=version) if version > 1:
                    raise _unreadable(number, f"it is of version {version}; this Sylph reads version 1")
                case header:
                    announced = (header.events, header.blobs)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise _unreadable(number, str(error)) from error
    if not records:
        raise UserError(
            "There is no session in that file.", kind="not_an_export", next=["Give a `sylph session export`."]
        )
    if announced != (len(records), len(blobs)):
        raise _incomplete(announced[0], len(records))
    return records, blobs


def check(records: list[Record], blobs: list[tuple[str, str, bytes]]) -> None:
    """Refuses a file whose chain does not hold: what comes in must be what went out."""
    session = records[0].session
    if not NAME.fullmatch(session):
        raise UserError(f"{session!r} cannot be the id of a session.", kind="not_an_export")
    vouchers = Vouchers.of(event_of(record) for record in records)
    for whose, name, data in blobs:
        if whose != session or not (output_digest(data) == name or vouchers.output(name, data)):
            raise StoreError(f"The output {name} in the file is not what it was.", kind="chain_broken", next=AGAIN)
    before = b""
    for number, record in enumerate(records, start=1):
        expected = link(before, record, committed(record))
        holds = record.hash == expected and vouchers.holds(record)
        if record.seq != number or record.session != records[0].session or not holds:
            raise StoreError(
                f"Fact {number} of the file does not follow from the one before: something was changed or is missing.",
                kind="chain_broken",
                details={"seq": record.seq},
                next=AGAIN,
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
        moved = moved._replace(hash=link(before, moved, committed(moved)))
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


def _incomplete(announced: int, found: int) -> StoreError:
    said = f"should hold {announced} facts and holds {found}" if announced >= 0 else "has no header"
    return StoreError(f"The file {said}, or an output is missing: it is not whole.", kind="chain_broken", next=AGAIN)


def _unreadable(number: int, why: str) -> UserError:
    return UserError(f"Line {number} cannot be read: {why}.", kind="not_an_export", details={"line": number})
