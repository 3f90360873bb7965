"""The credentials that open the server, in a file of their own: only hashes of them, so it gives nothing away."""

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.ids import new_id
from sylph.interfaces.http.who import SCOPES, Way, Who

Kind = Literal["token", "cookie", "link"]
PREFIX = "sylph_"
SCHEMA = """
create table if not exists key (
    id text primary key, kind text not null, hash blob not null unique, name text not null, scopes text not null,
    created integer not null, expires integer, used integer
) strict
"""


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A credential, without what makes it one."""

    id: str
    kind: Kind
    name: str
    scopes: tuple[str, ...]
    created: int
    expires: int | None = None
    used: int | None = None


class Keys:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._db = sqlite3.connect(path, isolation_level=None, timeout=10)
        path.chmod(0o600)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute(SCHEMA)

    def close(self) -> None:
        self._db.close()

    def make(self, kind: Kind, name: str, scopes: Iterable[str], seconds: float | None = None) -> tuple[Key, str]:
        """A new credential and its secret, which is told this once."""
        wanted = tuple(scope for scope in SCOPES if scope in set(scopes))
        if not wanted or set(scopes) - set(SCOPES):
            raise UserError("A key needs scopes.", next=[f"the scopes: {', '.join(SCOPES)}"])
        secret, now = PREFIX + secrets.token_urlsafe(32), _now()
        expires = now + int(seconds * 1000) if seconds else None
        key = Key(id=new_id(), kind=kind, name=name, scopes=wanted, created=now, expires=expires)
        row = (key.id, kind, _hash(secret), name, " ".join(wanted), now, expires)
        self._db.execute("insert into key values (?, ?, ?, ?, ?, ?, ?, null)", row)
        return key, secret

    def all(self) -> list[Key]:
        rows = self._db.execute("select id, kind, name, scopes, created, expires, used from key order by id").fetchall()
        return [_key(row) for row in rows]

    def revoke(self, id: str) -> None:
        if not self._db.execute("delete from key where id = ?", (id,)).rowcount:
            raise NotFound(f"There is no key {id!r}.", next=["sylph token list"])

    def known(self, secret: str, kind: Kind) -> Who | None:
        """Whose credential it is; None if nobody's, or no longer."""
        found = self._find(secret, kind)
        way: Way = "cookie" if kind == "cookie" else "token"
        return Who(id=found.id, name=found.name, way=way, scopes=frozenset(found.scopes)) if found else None

    def _find(self, secret: str, kind: Kind) -> Key | None:
        # Looked up by a hash of 256 random bits: how long that takes tells nothing about the secret.
        if not secret.startswith(PREFIX):
            return None
        row = self._db.execute(
            "select id, kind, name, scopes, created, expires, used from key where hash = ? and kind = ?",
            (_hash(secret), kind),
        ).fetchone()
        return _key(row) if row and (row[5] is None or row[5] > _now()) else None


def _key(row: tuple[str, Kind, str, str, int, int | None, int | None]) -> Key:
    id, kind, name, scopes, created, expires, used = row
    return Key(id=id, kind=kind, name=name, scopes=tuple(scopes.split()), created=created, expires=expires, used=used)


def _hash(secret: str) -> bytes:
    return hashlib.blake2b(secret.encode(), digest_size=32).digest()


def _now() -> int:
    return time.time_ns() // 1_000_000
