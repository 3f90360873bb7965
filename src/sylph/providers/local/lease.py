"""Locks of the operating system: they are gone with whoever held them, however it ended."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

PAUSE = 0.02


class Lease:
    """A lock on a file, held until it is dropped. Many may hold one that is shared."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    async def shared(cls, path: Path) -> "Lease":
        """Waits while somebody holds it alone."""
        return await cls._take(path, fcntl.LOCK_SH)

    @classmethod
    async def alone(cls, path: Path) -> "Lease":
        return await cls._take(path, fcntl.LOCK_EX)

    @classmethod
    def grab(cls, path: Path) -> "Lease | None":
        """Alone and at once, or not at all."""
        fd = _open(path)
        if _locked(fd, fcntl.LOCK_EX):
            return cls(fd)
        os.close(fd)
        return None

    @classmethod
    async def _take(cls, path: Path, kind: int) -> "Lease":
        fd = _open(path)
        try:
            while not _locked(fd, kind):  # noqa: ASYNC110 - it belongs to another process: nobody tells us
                await asyncio.sleep(PAUSE)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@asynccontextmanager
async def alone(path: Path) -> AsyncGenerator[None]:
    lease = await Lease.alone(path)
    try:
        yield
    finally:
        lease.drop()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _locked(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
