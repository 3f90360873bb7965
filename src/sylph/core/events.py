"""The one envelope, and the registry of every type of event that travels in it."""

from typing import ClassVar, Final

import msgspec

ENVELOPE_VERSION: Final = 1


class EventBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event says. `wire` is its name outside this process."""

    wire: ClassVar[str] = ""


class Fact(EventBody, frozen=True, kw_only=True):
    """Something that happened and must survive a restart."""

    # A durable fact is on the disk (not only in the kernel) before anybody is told of it.
    durable: ClassVar[bool] = False


class Signal(EventBody, frozen=True, kw_only=True):
    """Live progress. Shown and forgotten."""


class UnreadableRecord(Fact, frozen=True, kw_only=True):
    """A record this version cannot read: a newer type, a newer version, or a damaged one. Kept as it came."""

    type: str
    raw: bytes
    why: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The one envelope every reader sees. Signals carry `seq` 0 and no hash."""

    session: str
    seq: int
    ts: int
    body: EventBody
    turn: str = ""
    actor: str = "sylph"
    cause: int = 0
    hash: str = ""

    @property
    def type(self) -> str:
        return self.body.type if isinstance(self.body, UnreadableRecord) else self.body.wire


class LogHead(msgspec.Struct, frozen=True):
    """Where a session's log ends: what the next record must follow."""

    seq: int = 0
    hash: str = ""


def encode_body(body: EventBody) -> bytes:
    """The `data` of an event, as it is written and hashed."""
    return body.raw if isinstance(body, UnreadableRecord) else msgspec.json.encode(body)


def encode_event(event: Event) -> bytes:
    """The event as one line of JSON: the pinned contract of `--json`."""
    head = {
        "v": ENVELOPE_VERSION,
        "session": event.session,
        "seq": event.seq,
        "turn": event.turn,
        "ts": event.ts,
        "type": event.type,
        "actor": event.actor,
        "cause": event.cause,
        "hash": event.hash,
        "data": msgspec.Raw(_encode_data(event.body)),
    }
    return msgspec.json.encode(head)


def _encode_data(body: EventBody) -> bytes:
    if not isinstance(body, UnreadableRecord):
        return msgspec.json.encode(body)
    try:
        msgspec.json.decode(body.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.encode({"damaged": body.why})
    return body.raw
