"""Messages by their keys: where one is kept, in whichever session, and who may look for it now."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from sylph.core.errors import SessionBusy
from sylph.engine.folds import fold
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.log.lease import SessionLease
from sylph.engine.log.store import EventLog

RETRY_SECONDS = 0.02


class KeyedMessage(Struct, frozen=True, kw_only=True):
    """A message that was kept under a key, and where."""

    session: str
    seq: int
    id: str
    text: str


@asynccontextmanager
async def lock_idempotency_key(leases: Path, key: str, seconds: float) -> AsyncGenerator[None, None]:
    """Of all processes only one at a time is inside with the same key."""
    name = f"key-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        try:
            held = SessionLease.acquire(leases, name)
            break
        except SessionBusy as error:
            if loop.time() > end:
                raise SessionBusy("Another Sylph is about to begin the task with this key.") from error
            await asyncio.sleep(RETRY_SECONDS)
    try:
        yield
    finally:
        held.release()


def find_keyed_message(log: EventLog, key: str, session: str) -> KeyedMessage | None:
    """The message that was kept under a key, in one session or in any. A fork's copy of it does not count."""
    for of, seq, fact in log.find_keyed_inputs(key):
        if session in ("", of) and seq > fold.load_state(log, of, SESSION_FOLD)[0].forked_at:
            return KeyedMessage(session=of, seq=seq, id=fact.id, text=fact.text)
    return None
