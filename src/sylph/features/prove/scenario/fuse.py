"""Counts the boundaries a process crosses, and kills it at the one it was set for."""

import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
PATH_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir")
ACTION_EVENTS = ("subprocess.Popen", "socket.connect", "sqlite3.connect")


class CrashFuse:
    """An engine.trip.Trip. The first word of a boundary's name is its kind; each kind is counted for itself."""

    def __init__(self, kind: str = "", at: int = 0) -> None:
        self._kind, self._at = kind, at
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def __call__(self, boundary: str) -> None:
        kind = boundary.partition(" ")[0]
        with self._lock:
            self.counts[kind] += 1
            if kind == self._kind and self.counts[kind] == self._at:
                os.kill(os.getpid(), signal.SIGKILL)

    def count_file_events(self, root: str) -> None:
        """Counts what Python itself is about to do in `root` as the kind `file`. There is no way back."""

        def heard(event: str, args: tuple[object, ...]) -> None:
            if event in ACTION_EVENTS or (event in PATH_EVENTS and _changes_file(event, args, root)):
                self("file")

        sys.addaudithook(heard)


def _changes_file(event: str, args: tuple[object, ...], root: str) -> bool:
    if not isinstance(args[0], str | Path) or not str(args[0]).startswith(root):
        return False
    return event != "open" or bool(isinstance(args[2], int) and args[2] & WRITING)
