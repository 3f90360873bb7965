"""The hash chain: a fact becomes a record that follows its predecessor, and back.

digest = blake2b(salt ‖ data)            so that data can be erased later and its commitment stay
hash   = blake2b(previous hash ‖ head ‖ digest),  head = the JSON array of every other field of the envelope
"""

import hashlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from sylph.core.events import VERSION, Carried, Event, Fact, Head, data_of
from sylph.core.facts import BY_WIRE

_DECODERS = {wire: msgspec.json.Decoder(fact) for wire, fact in BY_WIRE.items()}
_ENCODER = msgspec.json.Encoder()
# An erased record keeps the digest of what it held in the place of the salt, which is shorter.
SALT, COMMITMENT = 8, 32


class Record(NamedTuple):
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


class Draft(NamedTuple):
    """A fact on its way into the log."""

    fact: Fact
    ts: int
    turn: str
    actor: str
    cause: int


Sealer = Callable[[str, Head, Draft], Record]
"""The session, where its log ends, and what is to follow."""


def digest(salt: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(salt + data, digest_size=32).digest()


def committed(record: Record) -> bytes:
    """What the chain holds of a record's data: its digest; an erased record has nothing else left of it."""
    return record.salt if erased(record) else digest(record.salt, record.data)


def erased(record: Record) -> bool:
    return len(record.salt) == COMMITMENT


def vouch(data: bytes) -> str:
    """How `session.erased` names what stands in an erased place."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def link(before: bytes, record: Record, committed: bytes) -> bytes:
    """The hash of `record`, whose data is represented by its digest alone."""
    head = _ENCODER.encode(
        [record.v, record.session, record.seq, record.turn, record.ts, record.type, record.actor, record.cause]
    )
    return hashlib.blake2b(before + head + committed, digest_size=32).digest()


def seal(session: str, head: Head, draft: Draft) -> Record:
    """The record that `draft` becomes at the end of a log that ends at `head`."""
    data, salt = data_of(draft.fact), os.urandom(SALT)
    type_ = draft.fact.type if isinstance(draft.fact, Carried) else draft.fact.wire
    bare = Record(
        session, head.seq + 1, VERSION, draft.turn, draft.ts, type_, draft.actor, draft.cause, data, salt, b""
    )
    return bare._replace(hash=link(bytes.fromhex(head.hash), bare, digest(salt, data)))


def tidy(fact: Fact) -> Fact:
    """The same fact with `?` for half characters, which no encoding can keep: names of files may hold them."""
    return msgspec.convert(tidy_value(msgspec.to_builtins(fact)), type(fact))


def tidy_value(value: Any) -> Any:
    """The same of builtins."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {tidy_value(key): tidy_value(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [tidy_value(item) for item in cast("list[Any]", value)]
        case _:
            return value


def event_of(record: Record) -> Event:
    """What a reader sees of a record. It never fails: what cannot be read is carried as it is."""
    return Event(
        session=record.session,
        seq=record.seq,
        ts=record.ts,
        body=fact_of(record.type, record.v, record.data),
        turn=record.turn,
        actor=record.actor,
        cause=record.cause,
        hash=record.hash.hex(),
    )


def fact_of(type_: str, v: int, data: bytes) -> Fact:
    """What a record says, or what it holds where that cannot be read."""
    decoder = _DECODERS.get(type_)
    if decoder is None:
        return Carried(type=type_, raw=data, why="unknown type")
    if v > VERSION:
        return Carried(type=type_, raw=data, why=f"written by a newer version (v{v})")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Carried(type=type_, raw=data, why=f"damaged: {error}")
