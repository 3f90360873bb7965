"""Locks of the operating system: they are gone with whoever held them, however it ended."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

POLL_SECONDS = 0.02


class FileLease:
    """A lock on a file, held until it is dropped. Many may hold one that is shared."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    async def acquire_shared(cls, path: Path) -> "FileLease":
        """Waits while somebody holds it alone."""
        return await cls._acquire_lock(path, fcntl.LOCK_SH)

    @classmethod
    async def acquire_exclusive(cls, path: Path) -> "FileLease":
        return await cls._acquire_lock(path, fcntl.LOCK_EX)

    @classmethod
    def try_exclusive(cls, path: Path) -> "FileLease | None":
        """Alone and at once, or not at all."""
        fd = _open_file(path)
        if _try_flock(fd, fcntl.LOCK_EX):
            return cls(fd)
        os.close(fd)
        return None

    @classmethod
    async def _acquire_lock(cls, path: Path, kind: int) -> "FileLease":
        fd = _open_file(path)
        try:
            while not _try_flock(fd, kind):  # noqa: ASYNC110 - it belongs to another process: nobody tells us
                await asyncio.sleep(POLL_SECONDS)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@asynccontextmanager
async def hold_exclusive(path: Path) -> AsyncGenerator[None]:
    lease = await FileLease.acquire_exclusive(path)
    try:
        yield
    finally:
        lease.release()


def _open_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
