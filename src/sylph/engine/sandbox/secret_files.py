"""Files in a workspace that no command is to read, and sockets on the machine that no command is to talk to."""

import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

# These are made to be read: they show which variables there are.
EXAMPLES = (".example", ".sample", ".template", ".dist", ".defaults", ".schema")
# Full of other people's files, or of the program's own.
SKIPPED_FOLDERS = frozenset(
    {".git", "node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache", "vendor"}
)
# So many entries are looked at, the nearest first.
MAX_ENTRIES = 5_000
CACHE_SECONDS = 3.0


class SecretFileScanner:
    """Looks again after a moment, or when a file came or went at the top; not before every command."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._plain = frozenset(each for each in patterns if not _is_glob(each))
        self._globs = tuple(each for each in patterns if _is_glob(each))
        self._seen: dict[str, tuple[float, int, list[str]]] = {}

    def secret_files(self, workspace: str) -> list[str]:
        """The secrets in a workspace, as far as it was looked through."""
        found = self._cached_result(workspace)
        if found is None:
            found = self._cache_result(workspace, list(self._scan_workspace(workspace)))
        return [path for path in found if os.path.exists(path)]

    def open_sockets(self) -> list[str]:
        """Every unix socket with a path that this user could talk to."""
        found = self._cached_result("")
        if found is None:
            found = self._cache_result("", [path for path in dict.fromkeys(_bound_sockets()) if _is_open_socket(path)])
        return [path for path in found if os.path.exists(path)]

    def _cached_result(self, what: str) -> list[str] | None:
        at, changed, found = self._seen.get(what, (0.0, 0, []))
        return found if at and time.monotonic() - at < CACHE_SECONDS and changed == _modified_ns(what) else None

    def _cache_result(self, what: str, found: list[str]) -> list[str]:
        self._seen[what] = (time.monotonic(), _modified_ns(what), found)
        return found

    def _scan_workspace(self, workspace: str) -> Iterator[str]:
        waiting, left = deque([workspace]), MAX_ENTRIES
        while waiting and left > 0:
            try:
                with os.scandir(waiting.popleft()) as entries:
                    for entry in entries:
                        left -= 1
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in SKIPPED_FOLDERS:
                                waiting.append(entry.path)
                        elif self._matches(entry.name):
                            # Behind a link lies the file that has to be hidden, if it is one of the workspace.
                            real = os.path.realpath(entry.path)
                            if real.startswith(f"{workspace}/") and os.path.isfile(real):
                                yield real
            except OSError:
                continue

    def _matches(self, name: str) -> bool:
        named = name in self._plain or any(fnmatchcase(name, glob) for glob in self._globs)
        return named and not name.endswith(EXAMPLES)


def _modified_ns(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns if folder else 0
    except OSError:
        return 0


def _is_glob(pattern: str) -> bool:
    return any(letter in pattern for letter in "*?[")


def _bound_sockets() -> Iterator[str]:
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                path = f"/{line.rstrip(chr(10)).partition(' /')[2]}"
                # What was bound by a way that only its process can go has no path here.
                if len(path) > 1 and os.path.realpath(path) == path:
                    yield path
    except OSError:
        return


def _is_open_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode) and os.access(path, os.W_OK)
    except OSError:
        return False
