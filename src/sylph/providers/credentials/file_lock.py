"""One process at a time: a lock on a file, which dies with its holder."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from sylph.core.errors import StoreError

PAUSE = 0.02
# A renewal takes a second or two; who holds it longer than this hangs.
TIMEOUT_SECONDS = 60.0


@contextmanager
def hold_lock(path: Path, *, seconds: float = TIMEOUT_SECONDS, shared: bool = False) -> Generator[None]:
    """Held by this caller alone, also among the threads of one process; or together with others that share it."""
    end = time.monotonic() + seconds
    while (fd := _try_lock(path, shared=shared)) is None:
        if time.monotonic() > end:
            raise _busy_error(path)
        time.sleep(PAUSE)
    try:
        yield
    finally:
        os.close(fd)


@asynccontextmanager
async def hold_lock_async(path: Path, *, seconds: float = TIMEOUT_SECONDS) -> AsyncGenerator[None]:
    """The same for what awaits while it holds the lock."""
    end = time.monotonic() + seconds
    while (fd := _try_lock(path, shared=False)) is None:
        if time.monotonic() > end:
            raise _busy_error(path)
        await asyncio.sleep(PAUSE)
    try:
        yield
    finally:
        os.close(fd)


def _try_lock(path: Path, *, shared: bool) -> int | None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _busy_error(path: Path) -> StoreError:
    return StoreError(
        f"Another Sylph has been busy with {path.stem} for more than {TIMEOUT_SECONDS:.0f} s.",
        kind="busy",
        next=["End the process that hangs, then try again."],
    )
