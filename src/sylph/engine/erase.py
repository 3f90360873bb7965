"""Taking a secret out of a session for good: out of its facts, its outputs and every snapshot; the chain holds."""

import sqlite3

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.errors import UserError
from sylph.engine.log import Log
from sylph.engine.seal import committed, vouch

SHORTEST = 4
PAGE = 500
GONE = b"[erased]"


class Erasure(Struct):
    """What there is to erase: the new data by number, the new outputs by name."""

    records: dict[int, tuple[bytes, bytes]] = field(default_factory=dict[int, tuple[bytes, bytes]])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __bool__(self) -> bool:
        return bool(self.records or self.blobs)

    def fact(self, why: str) -> facts.SessionErased:
        """Vouches for what will stand there. It is written first: an erasure that is cut off can be done again."""
        return facts.SessionErased(
            facts={str(seq): vouch(data) for seq, (data, _) in self.records.items()},
            blobs={name: vouch(data) for name, data in self.blobs.items()},
            why=why,
        )


def find(log: Log, session: str, secret: str) -> Erasure:
    """Every place of a session that holds `secret`, as it will be without it."""
    if len(secret) < SHORTEST:
        raise UserError(
            f"That is too short to be erased: {SHORTEST} characters at least, or it would be found everywhere.",
            kind="too_short",
        )
    found, after = Erasure(), 0
    needles = _needles(secret)
    while page := log.records(session, after=after, limit=PAGE):
        for record in page:
            clean = _without(record.data, needles)
            if clean != record.data:
                found.records[record.seq] = (clean, committed(record))
        after = page[-1].seq
    for name, data in log.query("select digest, bytes from blob where session = ?", (session,)):
        if (clean := _without(data, [secret.encode()])) != data:
            found.blobs[name] = clean
    return found


async def apply(log: Log, session: str, found: Erasure) -> None:
    """Overwrites what was found, and everything that was computed from it. Nothing of it stays in the file."""

    def change(db: sqlite3.Connection) -> None:
        for seq, (data, digest) in found.records.items():
            row = (data, digest, session, seq)
            db.execute("update event set data = ?, salt = ? where session = ? and seq = ?", row)
        for name, data in found.blobs.items():
            db.execute("update blob set bytes = ? where session = ? and digest = ?", (data, session, name))
        db.execute("delete from fold where session = ?", (session,))

    await log.change(change, durable=True)
    await log.scrub()


def _needles(secret: str) -> list[bytes]:
    """How the secret looks inside JSON: as a string, and as a string inside of a string (a call's arguments)."""
    once = msgspec.json.encode(secret)[1:-1]
    twice = msgspec.json.encode(once.decode())[1:-1]
    return sorted({secret.encode(), once, twice}, key=len, reverse=True)


def _without(data: bytes, needles: list[bytes]) -> bytes:
    for needle in needles:
        data = data.replace(needle, GONE)
    return data
