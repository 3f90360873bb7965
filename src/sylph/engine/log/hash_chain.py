"""The hash chain: a fact becomes a record that follows its predecessor, and back.

digest = blake2b(salt ‖ data)            so that data can be erased later and its commitment stay
hash   = blake2b(previous hash ‖ head ‖ digest),  head = the JSON array of every other field of the envelope
"""

import hashlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from sylph.core.events import ENVELOPE_VERSION, Event, Fact, LogHead, UnreadableRecord, encode_body
from sylph.core.facts import FACTS_BY_WIRE

_DECODERS = {wire: msgspec.json.Decoder(fact) for wire, fact in FACTS_BY_WIRE.items()}
_ENCODER = msgspec.json.Encoder()
# An erased record keeps the digest of what it held in the place of the salt, which is shorter.
SALT_BYTES, COMMITMENT_BYTES = 8, 32


class LogRecord(NamedTuple):
    """One row of the log, in the order of its columns."""

    session: str
    seq: int
    v: int
    turn: str
    ts: int
    type: str
    actor: str
    cause: int
    data: bytes
    salt: bytes
    hash: bytes


class PendingFact(NamedTuple):
    """A fact on its way into the log."""

    fact: Fact
    ts: int
    turn: str
    actor: str
    cause: int


RecordSealer = Callable[[str, LogHead, PendingFact], LogRecord]
"""The session, where its log ends, and what is to follow."""


def salted_digest(salt: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(salt + data, digest_size=32).digest()


def data_commitment(record: LogRecord) -> bytes:
    """What the chain holds of a record's data: its digest; an erased record has nothing else left of it."""
    return record.salt if is_erased(record) else salted_digest(record.salt, record.data)


def is_erased(record: LogRecord) -> bool:
    return len(record.salt) == COMMITMENT_BYTES


def erasure_digest(data: bytes) -> str:
    """How `session.erased` names what stands in an erased place."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def chain_hash(before: bytes, record: LogRecord, committed: bytes) -> bytes:
    """The hash of `record`, whose data is represented by its digest alone."""
    head = _ENCODER.encode(
        [record.v, record.session, record.seq, record.turn, record.ts, record.type, record.actor, record.cause]
    )
    return hashlib.blake2b(before + head + committed, digest_size=32).digest()


def seal_record(session: str, head: LogHead, draft: PendingFact) -> LogRecord:
    """The record that `draft` becomes at the end of a log that ends at `head`."""
    data, salt = encode_body(draft.fact), os.urandom(SALT_BYTES)
    type_ = draft.fact.type if isinstance(draft.fact, UnreadableRecord) else draft.fact.wire
    bare = LogRecord(
        session, head.seq + 1, ENVELOPE_VERSION, draft.turn, draft.ts, type_, draft.actor, draft.cause, data, salt, b""
    )
    return bare._replace(hash=chain_hash(bytes.fromhex(head.hash), bare, salted_digest(salt, data)))


def sanitize_fact(fact: Fact) -> Fact:
    """The same fact with `?` for half characters, which no encoding can keep: names of files may hold them."""
    return msgspec.convert(sanitize_value(msgspec.to_builtins(fact)), type(fact))


def sanitize_value(value: Any) -> Any:
    """The same of builtins."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {sanitize_value(key): sanitize_value(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [sanitize_value(item) for item in cast("list[Any]", value)]
        case _:
            return value


def event_from_record(record: LogRecord) -> Event:
    """What a reader sees of a record. It never fails: what cannot be read is carried as it is."""
    return Event(
        session=record.session,
        seq=record.seq,
        ts=record.ts,
        body=decode_fact(record.type, record.v, record.data),
        turn=record.turn,
        actor=record.actor,
        cause=record.cause,
        hash=record.hash.hex(),
    )


def decode_fact(type_: str, v: int, data: bytes) -> Fact:
    """What a record says, or what it holds where that cannot be read."""
    decoder = _DECODERS.get(type_)
    if decoder is None:
        return UnreadableRecord(type=type_, raw=data, why="unknown type")
    if v > ENVELOPE_VERSION:
        return UnreadableRecord(type=type_, raw=data, why=f"written by a newer version (v{v})")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return UnreadableRecord(type=type_, raw=data, why=f"damaged: {error}")


def output_digest(whole: bytes) -> str:
    """The name a whole output is kept under."""
    return hashlib.blake2b(whole, digest_size=16).hexdigest()
