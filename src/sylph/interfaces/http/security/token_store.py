"""The credentials that open the server, in a file of their own: only hashes of them, so it gives nothing away."""

import hashlib
import hmac
import secrets
import sqlite3
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.errors import NotFound, StoreError, UserError
from sylph.core.ids import new_id
from sylph.interfaces.http.kit.principal import SCOPES, CredentialKind, Principal

TokenKind = Literal["token", "cookie", "link"]
TOKEN_PREFIX = "sylph_"
# So long a login lasts, and so long a link can be used.
DAY = 86_400.0
LINK_SECONDS = 600.0
MAX_TOKENS = 1000
MAX_NAME_LENGTH = 100
SCHEMA = """
create table if not exists key (
    id text primary key, kind text not null, hash blob not null unique, name text not null, scopes text not null,
    created integer not null, expires integer, used integer, parent text
) strict
"""
UNEXPIRED = "(expires is null or expires > ?)"
COLUMNS = "id, kind, name, scopes, created, expires, used, parent"
TokenRow = tuple[str, TokenKind, str, str, int, int | None, int | None, str | None]


class ServerToken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A credential, without what makes it one. `parent` is the token that a login was made with."""

    id: str
    kind: TokenKind
    name: str
    scopes: tuple[str, ...]
    created: int
    expires: int | None = None
    used: int | None = None
    parent: str | None = None


class ServerTokenStore:
    def __init__(self, path: Path) -> None:
        self._seen: dict[str, int] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=10)
            path.chmod(0o600)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute(SCHEMA)
            self._db.execute("delete from key where expires <= ?", (_now_ms(),))
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} cannot be used: {error}.", next=["sylph doctor"]) from error

    def close(self) -> None:
        self.save_last_used()
        self._db.close()

    def create_token(
        self,
        kind: TokenKind,
        name: str,
        scopes: Iterable[str],
        seconds: float | None = None,
        *,
        parent: str | None = None,
    ) -> tuple[ServerToken, str]:
        """A new credential and its secret, which is told this once."""
        wanted, name = _check_scopes(set(scopes)), _check_name(name)
        secret, now = TOKEN_PREFIX + secrets.token_urlsafe(32), _now_ms()
        expires = now + int(seconds * 1000) if seconds is not None else None
        key = ServerToken(id=new_id(), kind=kind, name=name, scopes=wanted, created=now, expires=expires, parent=parent)
        row = (key.id, kind, _hash_secret(secret), name, " ".join(wanted), now, expires, parent)
        with self._write_transaction():
            self._execute("delete from key where expires <= ?", now)
            if self._execute("select count(*) from key").fetchone()[0] >= MAX_TOKENS:
                raise UserError(
                    f"There are {MAX_TOKENS} keys already.", kind="conflict", next=["sylph token revoke ID"]
                )
            self._execute("insert into key values (?, ?, ?, ?, ?, ?, ?, null, ?)", *row)
        return key, secret

    def list_tokens(self) -> list[ServerToken]:
        rows: list[TokenRow] = self._execute(
            f"select {COLUMNS} from key where {UNEXPIRED} order by created, id", _now_ms()
        ).fetchall()
        return [self._with_last_use(_token_from_row(row)) for row in rows]

    def get_token(self, id: str) -> ServerToken:
        row: TokenRow | None = self._execute(f"select {COLUMNS} from key where id = ?", id).fetchone()
        if not row or _is_expired(row[5]):
            raise NotFound(f"There is no key {id!r}.", next=["sylph token list"])
        return self._with_last_use(_token_from_row(row))

    def revoke(self, id: str) -> None:
        """Ends a credential, and the logins that were made with it."""
        if not self._execute("delete from key where id = ?1 or parent = ?1", id).rowcount:
            raise NotFound(f"There is no key {id!r}.", next=["sylph token list"])
        self._seen.pop(id, None)

    def find_principal(self, secret: str, kind: TokenKind) -> Principal | None:
        """Whose credential it is; None if nobody's, or no longer."""
        found = self._find_token(secret, kind)
        if found is None:
            return None
        self._seen[found.id] = _now_ms()
        way: CredentialKind = "cookie" if kind == "cookie" else "token"
        scopes = frozenset(found.scopes)
        return Principal(id=found.id, name=found.name, way=way, scopes=scopes, expires=found.expires)

    def redeem_link(self, secret: str) -> ServerToken | None:
        """What a link is good for, once: whoever comes second gets nothing, also at the same moment."""
        gone = f"delete from key where hash = ? and kind = 'link' returning {COLUMNS}"
        row: TokenRow | None = self._execute(gone, _hash_secret(secret)).fetchone()
        return _token_from_row(row) if row and not _is_expired(row[5]) else None

    def filter_valid(self, ids: Iterable[str]) -> set[str]:
        """Which of these are still good."""
        good = self._execute(f"select id from key where {UNEXPIRED}", _now_ms()).fetchall()
        return set(ids) & {id for (id,) in good}

    def save_last_used(self) -> None:
        """Writes down when credentials were last used: now and then, never for each request."""
        if not self._seen:
            return
        seen, self._seen = self._seen, {}
        with self._write_transaction():
            for id, used in seen.items():
                self._execute("update key set used = ? where id = ?", used, id)

    @contextmanager
    def _write_transaction(self) -> Generator[None, None, None]:
        self._execute("begin immediate")
        with self._db:
            yield

    def _execute(self, words: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._db.execute(words, values)
        except sqlite3.Error as error:
            raise StoreError(f"The keys cannot be used: {error}.", next=["try again", "sylph doctor"]) from error

    def _with_last_use(self, key: ServerToken) -> ServerToken:
        used = self._seen.get(key.id)
        return replace(key, used=used) if used else key

    def _find_token(self, secret: str, kind: TokenKind) -> ServerToken | None:
        # Looked up by a hash of 256 random bits: how long that takes tells nothing about the secret.
        if not secret.startswith(TOKEN_PREFIX):
            return None
        wanted = _hash_secret(secret)
        row: tuple[Any, ...] | None = self._execute(
            f"select hash, {COLUMNS} from key where hash = ? and kind = ?", wanted, kind
        ).fetchone()
        if row is None or not hmac.compare_digest(row[0], wanted):
            return None
        found = _token_from_row(cast(TokenRow, row[1:]))
        return None if _is_expired(found.expires) else found


def _check_scopes(asked: set[str]) -> tuple[str, ...]:
    wanted = tuple(scope for scope in SCOPES if scope in asked)
    if wrong := sorted(asked - set(SCOPES)):
        raise UserError(f"{wrong[0]!r} is no scope.", kind="bad_scope", next=[f"the scopes: {', '.join(SCOPES)}"])
    if not wanted:
        raise UserError("A key needs scopes.", kind="bad_scope", next=[f"the scopes: {', '.join(SCOPES)}"])
    if "hook" in wanted and len(wanted) > 1:
        # Whatever calls a hook is not the owner: it is told apart in the log, and cannot answer questions.
        raise UserError("A key for hooks is for nothing else.", next=["make two keys"])
    return wanted


def _check_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise UserError(
            f"A key needs a name: one line, {MAX_NAME_LENGTH} characters at most.", next=["sylph token create laptop"]
        )
    return name


def _token_from_row(row: TokenRow) -> ServerToken:
    id, kind, name, scopes, created, expires, used, parent = row
    return ServerToken(
        id=id,
        kind=kind,
        name=name,
        scopes=tuple(scopes.split()),
        created=created,
        expires=expires,
        used=used,
        parent=parent,
    )


def _is_expired(expires: int | None) -> bool:
    return expires is not None and expires <= _now_ms()


def _hash_secret(secret: str) -> bytes:
    return hashlib.blake2b(secret.encode(errors="replace"), digest_size=32).digest()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
