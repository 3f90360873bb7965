"""Messages by their keys: where one is kept, in whichever session, and who may look for it now."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from sylph.core.errors import SessionBusy
from sylph.engine import fold
from sylph.engine.lease import Lease
from sylph.engine.log import Log
from sylph.engine.summary import SUMMARY

BEAT = 0.02


class Message(Struct, frozen=True, kw_only=True):
    """A message that was kept under a key, and where."""

    session: str
    seq: int
    id: str
    text: str


@asynccontextmanager
async def sole(leases: Path, key: str, seconds: float) -> AsyncGenerator[None, None]:
    """Of all processes only one at a time is inside with the same key."""
    name = f"key-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        try:
            held = Lease.take(leases, name)
            break
        except SessionBusy as error:
            if loop.time() > end:
                raise SessionBusy("Another Sylph is about to begin the task with this key.") from error
            await asyncio.sleep(BEAT)
    try:
        yield
    finally:
        held.release()


def message(log: Log, key: str, session: str) -> Message | None:
    """The message that was kept under a key, in one session or in any. A fork's copy of it does not count."""
    for of, seq, fact in log.keyed(key):
        if session in ("", of) and seq > fold.load(log, of, SUMMARY)[0].forked_at:
            return Message(session=of, seq=seq, id=fact.id, text=fact.text)
    return None
