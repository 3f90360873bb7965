"""The processes of one session (in the kernel's sense): a command and all it has started.

A group is not enough: `timeout`, `set -m` and many a test runner put their children into groups of their own.
What calls setsid itself leaves the session and is not seen here; holding that is a sandbox's work.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# How often, a millisecond apart, a kill is repeated: a fork can be faster, and dying takes a moment.
ROUNDS = 50


def has_live_processes(session: int) -> bool:
    return bool(_live_groups(session))


def terminate_session(session: int) -> None:
    """Asks every process to end."""
    _signal_groups(_live_groups(session), signal.SIGTERM)


def kill_session(session: int) -> None:
    """Ends every process, and returns when they are gone; a process stuck in the kernel is not waited for."""
    for _ in range(ROUNDS):
        groups = _live_groups(session)
        if not groups:
            return
        _signal_groups(groups, signal.SIGKILL)
        time.sleep(0.001)


def _signal_groups(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _live_groups(session: int) -> set[int]:
    """The process groups of the session that hold a live process."""
    found: set[int] = set()
    if not Path("/proc/self").exists():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(session, 0)
            found.add(session)
        return found
    for pid in _list_pids():
        with suppress(OSError):  # it ended while we looked
            if os.getsid(pid) == session and _is_alive(pid):
                found.add(os.getpgid(pid))
    return found


def _list_pids() -> Iterator[int]:
    with os.scandir("/proc") as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def _is_alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split(maxsplit=1)[0]
    return state not in (b"Z", b"X")
