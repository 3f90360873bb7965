"""One server per home: a lock that dies with its holder, and what the holder says of itself."""

import fcntl
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import UserError

LOCK_NAME = "server.lock"
POLL_SECONDS = 0.05
TRIES = 20


class RunningServer(Struct, frozen=True, kw_only=True):
    """The server that runs. Before it takes requests its `url` is empty."""

    pid: int
    version: str
    started: float
    url: str = ""

    @property
    def description(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.started))
        return f"{self.url or 'starting'}  process {self.pid}, version {self.version}, since {since}"

    def already_running_error(self) -> UserError:
        """That there cannot be another."""
        where = f" at {self.url}" if self.url else ""
        return UserError(
            f"A server of this home runs already{where} (process {self.pid}).",
            kind="server_running",
            details={"pid": self.pid, "url": self.url},
            next=["sylph serve --stop  ends it", "SYLPH_HOME=… sylph serve  serves another home"],
        )


class ServerLock:
    """The held lock. Killing the process releases it: what it leaves behind is no obstacle."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path, self._fd = path, fd

    @classmethod
    def acquire(cls, data: Path) -> "ServerLock":
        """Raises UserError where another server has the home."""
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(TRIES):
            fd = os.open(data / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _try_lock(fd, fcntl.LOCK_EX):
                return cls(data / LOCK_NAME, fd)
            os.close(fd)
            if other := find_running_server(data):
                raise other.already_running_error()
            # Somebody only looked, which takes the lock for a moment.
            time.sleep(POLL_SECONDS / 5)
        raise UserError("The home is being taken by another server.", kind="server_running", next=["try again"])

    def record_server(self, resident: RunningServer) -> None:
        data = msgspec.json.encode(resident) + b"\n"
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, data, 0)

    @property
    def is_in_place(self) -> bool:
        """Whether the lock still is where others look for it: not if somebody removed the folder."""
        try:
            return os.fstat(self._fd).st_ino == self._path.stat().st_ino
        except OSError:
            return False

    def release(self) -> None:
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def find_running_server(data: Path) -> RunningServer | None:
    """The server of a home, if one runs."""
    try:
        fd = os.open(data / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        for _ in range(TRIES):
            if _try_lock(fd, fcntl.LOCK_SH):
                return None
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(os.pread(fd, 4096, 0), type=RunningServer)
            # It has the lock, and is just about to say who it is.
            time.sleep(POLL_SECONDS / 5)
        return None
    finally:
        os.close(fd)


def stop_server(data: Path, seconds: float) -> RunningServer | None:
    """Ends the server as a signal does, and waits for it; returns which it was. Raises UserError where it stays."""
    there = find_running_server(data)
    if there is None:
        return None
    os.kill(there.pid, signal.SIGTERM)
    end = time.monotonic() + seconds
    while (now := find_running_server(data)) and now.pid == there.pid:
        if time.monotonic() > end:
            raise UserError(
                f"The server (process {there.pid}) does not end.",
                kind="server_stuck",
                next=[
                    f"kill -9 {there.pid}  loses nothing: the log is complete, and open turns go on at the next start"
                ],
            )
        time.sleep(POLL_SECONDS)
    return there


def _try_lock(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
