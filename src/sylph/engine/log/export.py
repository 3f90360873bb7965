"""A session as NDJSON lines, out and in, without loss: records keep their bytes, their salt and their hash."""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import NamedTuple

import msgspec

from sylph.core.errors import StoreError, UserError
from sylph.core.events import LogHead
from sylph.core.ids import new_id
from sylph.engine.log.erasure_digests import ErasureDigests
from sylph.engine.log.hash_chain import (
    LogRecord,
    chain_hash,
    data_commitment,
    event_from_record,
    output_digest,
)
from sylph.engine.log.store import EventLog

EXPORT_FORMAT = "sylph.session"
EXPORT_AGAIN = ("Export the session again from where it came.",)
# Ids become names of files.
SESSION_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
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


class ImportResult(NamedTuple):
    session: str
    events: int
    blobs: int
    known: bool = False


async def export_session(log: EventLog, session: str) -> AsyncGenerator[bytes, None]:
    """A header, every record in order, then the whole outputs they refer to."""
    head = log.head(session)
    blobs = log.query("select digest from blob where session = ? order by digest", (session,))
    header = _Header(format=EXPORT_FORMAT, version=1, session=session, events=head.seq, blobs=len(blobs))
    yield msgspec.json.encode(header) + b"\n"
    after = 0
    while after < head.seq and (page := log.read_records(session, after=after, limit=min(PAGE, head.seq - after))):
        for record in page:
            yield msgspec.json.encode(_export_line(record)) + b"\n"
        after = page[-1].seq
    for (name,) in blobs:
        # One at a time: together they may be more than there is memory for.
        data = log.load_blob(session, name) or b""
        blob = _Blob(session=session, digest=name, base64=base64.b64encode(data).decode())
        yield msgspec.json.encode(blob) + b"\n"


def _export_line(record: LogRecord) -> _Line:
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


async def import_session(log: EventLog, lines: Iterable[bytes], *, fresh: bool = False, id: str = "") -> ImportResult:
    """Brings a session in, whole or not at all. `fresh` gives it a new id, and so a chain of its own."""
    records, blobs = await asyncio.to_thread(_read_export, lines)
    session = records[0].session
    here = log.head(session)
    if fresh:
        session = id or new_id()
        if log.head(session).seq:
            return ImportResult(session, len(records), len(blobs), known=True)
        records = rechain_records(records, session)
        blobs = [(session, name, data) for _, name, data in blobs]
    elif here.seq:
        return _existing_session(session, records, len(blobs), here)
    await log.install_records(records, blobs)
    return ImportResult(session, len(records), len(blobs))


def _read_export(lines: Iterable[bytes]) -> tuple[list[LogRecord], list[tuple[str, str, bytes]]]:
    records, blobs = parse_export(lines)
    check_export(records, blobs)
    return records, blobs


def parse_export(lines: Iterable[bytes]) -> tuple[list[LogRecord], list[tuple[str, str, bytes]]]:
    decoder = msgspec.json.Decoder(_Header | _Line | _Blob)
    records: list[LogRecord] = []
    blobs: list[tuple[str, str, bytes]] = []
    announced = (-1, -1)
    for number, line in _number_lines(lines):
        try:
            match decoder.decode(line):
                case _Line() as item:
                    records.append(_record_from_line(item))
                case _Blob(session=session, digest=name, base64=text):
                    blobs.append((session, name, base64.b64decode(text, validate=True)))
                case _Header(version=version) if version > 1:
                    raise _unreadable_error(number, f"it is of version {version}; this Sylph reads version 1")
                case header:
                    announced = (header.events, header.blobs)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise _unreadable_error(number, str(error)) from error
    if not records:
        raise UserError(
            "There is no session in that file.", kind="not_an_export", next=["Give a `sylph session export`."]
        )
    if announced != (len(records), len(blobs)):
        raise _incomplete_error(announced[0], len(records))
    return records, blobs


def check_export(records: list[LogRecord], blobs: list[tuple[str, str, bytes]]) -> None:
    """Refuses a file whose chain does not hold: what comes in must be what went out."""
    session = records[0].session
    if not SESSION_ID_PATTERN.fullmatch(session):
        raise UserError(f"{session!r} cannot be the id of a session.", kind="not_an_export")
    vouchers = ErasureDigests.from_events(event_from_record(record) for record in records)
    for whose, name, data in blobs:
        if whose != session or not (output_digest(data) == name or vouchers.covers_output(name, data)):
            raise StoreError(
                f"The output {name} in the file is not what it was.", kind="chain_broken", next=EXPORT_AGAIN
            )
    before = b""
    for number, record in enumerate(records, start=1):
        expected = chain_hash(before, record, data_commitment(record))
        holds = record.hash == expected and vouchers.covers_record(record)
        if record.seq != number or record.session != records[0].session or not holds:
            raise StoreError(
                f"Fact {number} of the file does not follow from the one before: something was changed or is missing.",
                kind="chain_broken",
                details={"seq": record.seq},
                next=EXPORT_AGAIN,
            )
        before = record.hash


def _number_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _record_from_line(line: _Line) -> LogRecord:
    data = base64.b64decode(line.raw, validate=True) if line.raw is not None else bytes(line.data)
    return LogRecord(
        line.session, line.seq, line.v, line.turn, line.ts, line.type, line.actor, line.cause,
        data, bytes.fromhex(line.salt), bytes.fromhex(line.hash),
    )  # fmt: skip


def rechain_records(records: list[LogRecord], session: str) -> list[LogRecord]:
    before, renamed = b"", list[LogRecord]()
    for record in records:
        moved = record._replace(session=session)
        moved = moved._replace(hash=chain_hash(before, moved, data_commitment(moved)))
        renamed.append(moved)
        before = moved.hash
    return renamed


def _existing_session(session: str, records: list[LogRecord], blobs: int, here: LogHead) -> ImportResult:
    if here.hash == records[-1].hash.hex():
        return ImportResult(session, len(records), blobs, known=True)
    raise UserError(
        f"There is already a different session {session} here.",
        kind="exists",
        next=["Bring it in under a new id with `--new-id`."],
    )


def _incomplete_error(announced: int, found: int) -> StoreError:
    said = f"should hold {announced} facts and holds {found}" if announced >= 0 else "has no header"
    return StoreError(
        f"The file {said}, or an output is missing: it is not whole.", kind="chain_broken", next=EXPORT_AGAIN
    )


def _unreadable_error(number: int, why: str) -> UserError:
    return UserError(f"Line {number} cannot be read: {why}.", kind="not_an_export", details={"line": number})
