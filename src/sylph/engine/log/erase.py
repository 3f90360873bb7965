"""Taking a secret out of a session for good: out of its facts, its outputs and every snapshot; the chain holds."""

import re
import sqlite3

import msgspec
from msgspec import Struct, field

from sylph.core import facts
from sylph.core.errors import UserError
from sylph.engine.log.hash_chain import data_commitment, erasure_digest
from sylph.engine.log.store import EventLog

MIN_SECRET_LENGTH = 4
# A longer secret is looked for only as we write it ourselves.
MAX_SPELLED_LENGTH = 4_000
PAGE = 500
ERASED_MARK = b"[erased]"


class SecretErasure(Struct):
    """What there is to erase: the new data by number, the new outputs by name."""

    records: dict[int, tuple[bytes, bytes]] = field(default_factory=dict[int, tuple[bytes, bytes]])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __bool__(self) -> bool:
        return bool(self.records or self.blobs)

    def to_fact(self, why: str) -> facts.SessionErased:
        """Vouches for what will stand there. It is written first: an erasure that is cut off can be done again."""
        return facts.SessionErased(
            facts={str(seq): erasure_digest(data) for seq, (data, _) in self.records.items()},
            blobs={name: erasure_digest(data) for name, data in self.blobs.items()},
            why=why,
        )


def find_secret(log: EventLog, session: str, secret: str) -> SecretErasure:
    """Every place of a session that holds `secret`, as it will be without it."""
    if len(secret) < MIN_SECRET_LENGTH:
        raise UserError(
            f"That is too short to be erased: {MIN_SECRET_LENGTH} characters at least, "
            f"or it would be found everywhere.",
            kind="too_short",
        )
    found, after = SecretErasure(), 0
    needle = _secret_pattern(secret)
    while page := log.read_records(session, after=after, limit=PAGE):
        for record in page:
            clean = needle.sub(ERASED_MARK, record.data)
            if clean != record.data:
                found.records[record.seq] = (clean, data_commitment(record))
        after = page[-1].seq
    for name, data in log.query("select digest, bytes from blob where session = ?", (session,)):
        if (clean := data.replace(secret.encode(), ERASED_MARK)) != data:
            found.blobs[name] = clean
    return found


async def apply_erasure(log: EventLog, session: str, found: SecretErasure) -> None:
    """Overwrites what was found, and everything that was computed from it. Nothing of it stays in the file."""

    def change(db: sqlite3.Connection) -> None:
        for seq, (data, digest) in found.records.items():
            row = (data, digest, session, seq)
            db.execute("update event set data = ?, salt = ? where session = ? and seq = ?", row)
        for name, data in found.blobs.items():
            db.execute("update blob set bytes = ? where session = ? and digest = ?", (data, session, name))
        db.execute("delete from fold where session = ?", (session,))

    await log.execute_change(change, durable=True)
    await log.scrub_file()


def _secret_pattern(secret: str) -> re.Pattern[bytes]:
    """How the secret may look inside JSON: as a string, and as a string inside of a string.

    What a model's service said is kept as it came, and services differ in which characters they escape, and how.
    """
    if len(secret) > MAX_SPELLED_LENGTH:
        plain = _json_escape(secret)
        return re.compile("|".join(map(re.escape, (_json_escape(plain), plain, secret))).encode())
    once = [_json_spellings(char) for char in secret]
    twice = [{_json_escape(form) for form in forms} for forms in once]
    ways = ("".join(_any_of(forms) for forms in each) for each in (twice, once, [{char} for char in secret]))
    return re.compile("|".join(ways).encode())


def _json_spellings(char: str) -> set[str]:
    """Every way to write a character inside a JSON string."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = [units[at : at + 4] for at in range(0, len(units), 4)]
    spelt = {"".join(f"\\u{unit}" for unit in escaped), "".join(f"\\u{unit.upper()}" for unit in escaped)}
    return {_json_escape(char), *spelt, *(("\\/",) if char == "/" else ())}


def _json_escape(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _any_of(forms: set[str]) -> str:
    return f"(?:{'|'.join(sorted(map(re.escape, forms), key=len, reverse=True))})"
