"""What the routes for files remember between requests."""

import threading
from pathlib import Path
from typing import ClassVar, Literal

LOCKS = 64


class WorkspaceCache:
    """Which folders are known, and who is writing where at this moment."""

    MAX_AGE: ClassVar[float] = 30.0
    """So many seconds later it is looked up again which sessions work where."""

    def __init__(self) -> None:
        self.roots: dict[str, tuple[Path, Literal["server", "added", "session"]]] = {}
        self.until = 0.0
        self._locks = tuple(threading.Lock() for _ in range(LOCKS))

    def lock_for(self, path: object) -> threading.Lock:
        """One for each path; that some share one does no harm."""
        return self._locks[hash(str(path)) % LOCKS]
