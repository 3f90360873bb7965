"""One process at a time works on a session: an OS lock, which dies with its holder."""

import errno
import fcntl
import os
import time
from pathlib import Path

from sylph.core.errors import SessionBusy, StoreError


class SessionLease:
    """A held lock on one session. Killing the process releases it; there is no time-out to wait for."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path, self._fd = path, fd

    @classmethod
    def acquire(cls, folder: Path, session: str) -> "SessionLease":
        try:
            return cls._acquire_lock(folder, session)
        except OSError as error:
            raise _lock_error(folder, error) from error

    @classmethod
    def _acquire_lock(cls, folder: Path, session: str) -> "SessionLease":
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{session}.lock"
        for last in (False,) * 5 + (True,):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                pid = os.read(fd, 32).decode(errors="replace").strip()
                os.close(fd)
                if last:
                    raise _busy_error(session, pid) from error
                # Somebody may only be looking (`holder`), which takes the lock for a moment.
                time.sleep(0.005)
                continue
            if _is_same_file(fd, path):
                os.truncate(fd, 0)
                os.pwrite(fd, str(os.getpid()).encode(), 0)
                return cls(path, fd)
            # The file was removed between open and lock, by a holder that let go: try the new one.
            os.close(fd)
        raise _busy_error(session, "")

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def holder_pid(folder: Path, session: str) -> int:
    """The process that works on the session now; 0 if none does."""
    try:
        fd = os.open(folder / f"{session}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(fd, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdigit() else -1
    finally:
        os.close(fd)
    return 0


def all_holders(folder: Path) -> dict[str, int]:
    """Every session that some process works on now."""
    names = [path.stem for path in folder.glob("*.lock")] if folder.is_dir() else []
    return {name: pid for name in names if (pid := holder_pid(folder, name))}


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        return os.fstat(fd).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _lock_error(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"The session could not be locked: {error.strerror}.",
        kind="store_full" if error.errno == errno.ENOSPC else "store_read_only",
        details={"path": folder},
        next=[
            f"Check that {folder} can be written and has space.",
            "Point SYLPH_DATA at a folder that can be written.",
        ],
    )


def _busy_error(session: str, pid: str) -> SessionBusy:
    return SessionBusy(
        f"Session {session} is being worked on by another Sylph (process {pid or 'unknown'}).",
        details={"session": session, "pid": pid},
        next=[
            "Wait until it is done, or end that process.",
            f"`sylph session fork {session}` makes a copy to work on meanwhile.",
        ],
    )
