"""Taking a secret out of a session for good: out of its facts, its outputs and every snapshot; the chain holds."""

import re
import sqlite3

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.errors import UserError
from sylph.engine.log import Log
from sylph.engine.seal import committed, vouch

SHORTEST = 4
# A longer secret is looked for only as we write it ourselves.
SPELT = 4_000
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
    needle = _needle(secret)
    while page := log.records(session, after=after, limit=PAGE):
        for record in page:
            clean = needle.sub(GONE, record.data)
            if clean != record.data:
                found.records[record.seq] = (clean, committed(record))
        after = page[-1].seq
    for name, data in log.query("select digest, bytes from blob where session = ?", (session,)):
        if (clean := data.replace(secret.encode(), GONE)) != data:
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


def _needle(secret: str) -> re.Pattern[bytes]:
    """How the secret may look inside JSON: as a string, and as a string inside of a string.

    What a model's service said is kept as it came, and services differ in which characters they escape, and how.
    """
    if len(secret) > SPELT:
        plain = _plain(secret)
        return re.compile("|".join(map(re.escape, (_plain(plain), plain, secret))).encode())
    once = [_forms(char) for char in secret]
    twice = [{_plain(form) for form in forms} for forms in once]
    ways = ("".join(_any(forms) for forms in each) for each in (twice, once, [{char} for char in secret]))
    return re.compile("|".join(ways).encode())


def _forms(char: str) -> set[str]:
    """Every way to write a character inside a JSON string."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = [units[at : at + 4] for at in range(0, len(units), 4)]
    spelt = {"".join(f"\\u{unit}" for unit in escaped), "".join(f"\\u{unit.upper()}" for unit in escaped)}
    return {_plain(char), *spelt, *(("\\/",) if char == "/" else ())}


def _plain(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _any(forms: set[str]) -> str:
    return f"(?:{'|'.join(sorted(map(re.escape, forms), key=len, reverse=True))})"
