"""What the delete tool keeps of a session: the only place that holds files too large to be copied for undo."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec

from sylph.core.facts.file_change import FileState, display_path


class DeletedFileOrigin(msgspec.Struct, frozen=True):
    """Where something in the trash comes from, as the tool wrote it down."""

    path: str
    workspace: str


class SessionTrash:
    """Looks through `CALL/item`, each with its `CALL/origin.json` beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_file(self, root: bytes, path: str, state: FileState) -> bytes | None:
        """The file that was at `path` and was never copied, by its size and time; None where it is not here."""
        if state.kind != "file" or state.digest:
            return None
        return next(
            (found for found in self._candidate_files(root, display_path(path)) if _is_same_file(found, state)), None
        )

    def _candidate_files(self, root: bytes, name: str) -> Iterator[bytes]:
        base = os.path.realpath(os.fsencode(self._folder))
        for call in sorted(os.listdir(base) if os.path.isdir(base) else ()):
            with suppress(OSError, msgspec.DecodeError):
                told = Path(os.fsdecode(os.path.join(base, call, b"origin.json"))).read_bytes()
                origin = msgspec.json.decode(told, type=DeletedFileOrigin)
                inside = f"{name}/".startswith(f"{origin.path}/")
                found = os.path.join(base, call, b"item") + os.fsencode(name[len(origin.path) :])
                # Nothing is fetched through a link.
                if (
                    inside
                    and os.path.realpath(os.fsencode(origin.workspace)) == root
                    and os.path.realpath(found) == found
                ):
                    yield found


def _is_same_file(found: bytes, state: FileState) -> bool:
    try:
        stat = os.lstat(found)
    except OSError:
        return False
    return S_ISREG(stat.st_mode) and (stat.st_size, stat.st_mtime_ns) == (state.size, state.mtime)
