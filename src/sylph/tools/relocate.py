"""Moving and copying files and folders so that each is in one place at any moment, also across file systems.

Within a file system a move is one rename. Across, the copy is made beside its new place first; then the old one is put
aside, the new one takes its name, and what was put aside is removed. Both are known again by their inode.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from errno import EXDEV
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG

from msgspec import Struct

from sylph.core.errors import ToolError
from sylph.core.text import count
from sylph.tools import atomic

ENTRIES = 200_000
BYTES = 4_000_000_000


class Load(Struct, frozen=True):
    """How much there is to copy."""

    files: int
    bytes: int
    more: bool = False

    def __str__(self) -> str:
        return f"{'more than ' * self.more}{count(self.files, 'file')}, {self.bytes:,} bytes"


def move(source: Path, target: Path, by: str) -> None:
    """Raises OSError; then all is where it was."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        measure(source, source.name, bounded=True)
        _across(source, target, by)
    atomic.settle(target.parent)
    atomic.settle(source.parent)


def copy(source: Path, target: Path, by: str) -> None:
    """The whole copy appears at once. Links stay links; raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = atomic.draft_of(target, by)
    try:
        _copy(source, draft)
        draft.rename(target)
    except BaseException:
        remove(draft)
        raise
    atomic.settle(target.parent)


def identity(path: Path) -> str:
    """Names what is at `path` now, wherever it is moved to on its file system; empty for nothing."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{found.st_dev} {found.st_ino} {found.st_mtime_ns if not S_ISDIR(found.st_mode) else 0}"


def moved(source: Path, target: Path, was: str, by: str) -> bool | None:
    """After a crash: whether a move was made, which is finished if it was half way; None if nobody can tell."""
    draft, aside = atomic.draft_of(target, by), aside_of(source, by)
    if identity(aside) == was and not target.exists():
        draft.rename(target)
    if identity(aside) == was:
        remove(aside)
        return True
    if identity(source) == was:
        remove(draft)
        return False
    there, other = identity(target), identity(source)
    # On another file system it has another inode; its place was free before.
    known = there == was or (there and there.split()[0] != was.split()[0])
    return True if known and not other else None


def remove(path: Path) -> None:
    """Removes a draft of any kind; nothing there is as good."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def measure(path: Path, name: str, *, bounded: bool = False) -> Load:
    """How much is there, counted as far as is worth the wait. For what is to be copied, that is the most."""
    files = size = 0
    for found in _all(path):
        if bounded and not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode) or S_ISLNK(found.st_mode)):
            raise ToolError(f"{name} holds a device, a pipe or a socket.", kind="not_a_file")
        files += not S_ISDIR(found.st_mode)
        size += found.st_size if S_ISREG(found.st_mode) else 0
        if files <= ENTRIES and (size <= BYTES or not bounded):
            continue
        if not bounded:
            return Load(files, size, more=True)
        raise ToolError(
            f"{name} is more than {ENTRIES:,} files or {BYTES:,} bytes.",
            kind="too_large",
            next=["Use a shell command for it."],
        )
    return Load(files, size)


def _all(path: Path) -> Iterator[os.stat_result]:
    found = path.lstat()
    yield found
    if S_ISDIR(found.st_mode):
        for place, folders, files in os.walk(path, onerror=_raise):
            for name in (*folders, *files):
                yield Path(place, name).lstat()


def _raise(error: OSError) -> None:
    raise error


def _across(source: Path, target: Path, by: str) -> None:
    draft, aside = atomic.draft_of(target, by), aside_of(source, by)
    try:
        _copy(source, draft)
        atomic.settle(draft.parent)
        source.rename(aside)
    except BaseException:
        remove(draft)
        raise
    draft.rename(target)
    atomic.settle(target.parent)
    remove(aside)


def aside_of(source: Path, by: str) -> Path:
    return atomic.draft_of(source, f"{by} aside")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
    _flush(target)


def _flush(path: Path) -> None:
    """Every copied file reaches the disk before anything depends on it."""
    inner = (Path(place, name) for place, _, files in os.walk(path) for name in files)
    for file in inner if path.is_dir() and not path.is_symlink() else [path]:
        # A file that nobody may read was copied as its owner, and cannot be opened again.
        with suppress(PermissionError):
            if not file.is_symlink():
                descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
