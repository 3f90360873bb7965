"""Requests that make something, made once: the key of a request, what it asked for, and what it was answered.

What a request makes is named after its key, so a second one finds it even where the process was killed between the two:
then there is no answer to repeat, but the same thing to tell of.
"""

import hashlib
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import Header, Request
from msgspec import Struct
from starlette.responses import Response

from sylph.core.errors import UserError
from sylph.core.ids import ALPHABET
from sylph.engine.log import schema
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import JSON, to_response

RETENTION_DAYS = 7
logger = logging.getLogger("sylph.http")
SCHEMA = """
create table if not exists request (
    name blob primary key, print blob not null, at integer not null, status integer, body blob
) strict, without rowid;
create index if not exists request_at on request (at);
"""
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="Makes a repeated request one: the same key and body get the same answer.",
    ),
]
Work = Callable[[str], Awaitable[Any]]
"""Makes something under the given name, or finds it; an empty name means any."""


class IdempotentRequest(Struct, frozen=True):
    """A request with a key: whose it is, and a print of what it wants."""

    key_hash: bytes
    fingerprint: bytes

    @property
    def resource_id(self) -> str:
        """What the thing is called that it makes: always the same for the same key."""
        number, letters = int.from_bytes(self.key_hash), list[str]()
        for _ in range(12):
            number, at = divmod(number, len(ALPHABET))
            letters.append(ALPHABET[at])
        return "".join(letters)


class IdempotencyStore:
    """The requests that had a key, in a file of their own. It is opened when the first one comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._base: sqlite3.Connection | None = None
        self._running: set[bytes] = set()

    def close(self) -> None:
        if self._base:
            self._base.close()

    async def run_once(self, asked: IdempotentRequest, work: Callable[[], Awaitable[Response]]) -> Response:
        """The answer to a request, the old one where there is one. What failed may be tried again."""
        if asked.key_hash in self._running:
            raise AccessDenied(
                "A request with this key is being worked on.", kind="in_progress", next=["try again in a moment"]
            )
        try:
            before = self._find_answer(asked)
        except sqlite3.Error as error:
            raise schema.explain_error(error, self._path) from error
        if before:
            return before
        self._running.add(asked.key_hash)
        try:
            answer = await work()
            self._store_answer(asked, answer)
        finally:
            self._running.discard(asked.key_hash)
        return answer

    def _find_answer(self, asked: IdempotentRequest) -> Response | None:
        row = self._db.execute("select print, status, body from request where name = ?", (asked.key_hash,)).fetchone()
        if row is None:
            now = _now_ms()
            self._db.execute("delete from request where at < ?", (now - RETENTION_DAYS * 86_400_000,))
            self._db.execute(
                "insert into request values (?, ?, ?, null, null)", (asked.key_hash, asked.fingerprint, now)
            )
            return None
        print, status, body = row
        if print != asked.fingerprint:
            raise UserError(
                "This key was used for another request.", kind="key_reused", next=["take a new key for each request"]
            )
        if status is None:
            # It was begun, and whoever worked on it died or failed: it is begun again, under the same name.
            return None
        return Response(body, status, {"Idempotency-Replayed": "true"}, JSON)

    def _store_answer(self, asked: IdempotentRequest, answer: Response) -> None:
        row = (answer.status_code, bytes(answer.body), asked.key_hash)
        try:
            self._db.execute("update request set status = ?, body = ? where name = ?", row)
        except sqlite3.Error as error:
            # It is done, and can be found again by its name: only the answer is not kept.
            logger.warning("an answer was not kept: %s", error)

    @property
    def _db(self) -> sqlite3.Connection:
        if self._base is None:
            self._path.touch(mode=0o600, exist_ok=True)
            self._base = sqlite3.connect(self._path, isolation_level=None, timeout=10)
            self._base.execute("pragma journal_mode=wal")
            self._base.execute("pragma synchronous=normal")
            self._base.executescript(SCHEMA)
        return self._base


def identify_request(principal: Principal, request: Request, key: str, wanted: object) -> IdempotentRequest:
    """A key counts for one caller and one address; `wanted` is what was asked for there."""
    name = msgspec.json.encode([principal.id, request.method, request.url.path, key])
    print = wanted if isinstance(wanted, bytes) else msgspec.json.encode(wanted)
    return IdempotentRequest(_hash_bytes(name), _hash_bytes(print))


async def respond_once(
    request: Request,
    principal: Principal,
    key: str,
    wanted: object,
    work: Work,
    *,
    status: int | Callable[[Any], int] = 201,
) -> Response:
    """Does the work once for a key; without one, now."""
    if not key:
        return _to_response(await work(""), status, request)
    given = identify_request(principal, request, key, wanted)

    async def done() -> Response:
        return _to_response(await work(given.resource_id), status, request)

    return await request.app.state.server.idempotency.run_once(given, done)


def _to_response(made: Any, status: int | Callable[[Any], int], request: Request) -> Response:
    return to_response(made, status if isinstance(status, int) else status(made), request)


def _hash_bytes(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
