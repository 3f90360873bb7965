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
from sylph.core.text.formatting import count_noun
from sylph.tools.files import atomic_write

ENTRIES = 200_000
BYTES = 4_000_000_000


class TransferSize(Struct, frozen=True):
    """How much there is to copy."""

    files: int
    bytes: int
    more: bool = False

    def __str__(self) -> str:
        return f"{'more than ' * self.more}{count_noun(self.files, 'file')}, {self.bytes:,} bytes"


def move_path(source: Path, target: Path, by: str) -> None:
    """Raises OSError; then all is where it was."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        measure_size(source, source.name, bounded=True)
        _move_across_devices(source, target, by)
    atomic_write.fsync_folder(target.parent)
    atomic_write.fsync_folder(source.parent)


def copy_path(source: Path, target: Path, by: str) -> None:
    """The whole copy appears at once. Links stay links; raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = atomic_write.draft_path(target, by)
    try:
        _copy_and_fsync(source, draft)
        draft.rename(target)
    except BaseException:
        remove_path(draft)
        raise
    atomic_write.fsync_folder(target.parent)


def file_identity(path: Path) -> str:
    """Names what is at `path` now, wherever it is moved to on its file system; empty for nothing."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{found.st_dev} {found.st_ino} {found.st_mtime_ns if not S_ISDIR(found.st_mode) else 0}"


def recover_move(source: Path, target: Path, was: str, by: str) -> bool | None:
    """After a crash: whether a move was made, which is finished if it was half way; None if nobody can tell."""
    draft, aside = atomic_write.draft_path(target, by), aside_path(source, by)
    if file_identity(aside) == was and not target.exists():
        draft.rename(target)
    if file_identity(aside) == was:
        remove_path(aside)
        return True
    if file_identity(source) == was:
        remove_path(draft)
        return False
    there, other = file_identity(target), file_identity(source)
    # On another file system it has another inode; its place was free before.
    known = there == was or (there and there.split()[0] != was.split()[0])
    return True if known and not other else None


def remove_path(path: Path) -> None:
    """Removes a draft of any kind; nothing there is as good."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def measure_size(path: Path, name: str, *, bounded: bool = False) -> TransferSize:
    """How much is there, counted as far as is worth the wait. For what is to be copied, that is the most."""
    files = size = 0
    for found in _walk_stats(path):
        if bounded and not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode) or S_ISLNK(found.st_mode)):
            raise ToolError(f"{name} holds a device, a pipe or a socket.", kind="not_a_file")
        files += not S_ISDIR(found.st_mode)
        size += found.st_size if S_ISREG(found.st_mode) else 0
        if files <= ENTRIES and (size <= BYTES or not bounded):
            continue
        if not bounded:
            return TransferSize(files, size, more=True)
        raise ToolError(
            f"{name} is more than {ENTRIES:,} files or {BYTES:,} bytes.",
            kind="too_large",
            next=["Use a shell command for it."],
        )
    return TransferSize(files, size)


def _walk_stats(path: Path) -> Iterator[os.stat_result]:
    found = path.lstat()
    yield found
    if S_ISDIR(found.st_mode):
        for place, folders, files in os.walk(path, onerror=_raise_error):
            for name in (*folders, *files):
                yield Path(place, name).lstat()


def _raise_error(error: OSError) -> None:
    raise error


def _move_across_devices(source: Path, target: Path, by: str) -> None:
    draft, aside = atomic_write.draft_path(target, by), aside_path(source, by)
    try:
        _copy_and_fsync(source, draft)
        atomic_write.fsync_folder(draft.parent)
        source.rename(aside)
    except BaseException:
        remove_path(draft)
        raise
    draft.rename(target)
    atomic_write.fsync_folder(target.parent)
    remove_path(aside)


def aside_path(source: Path, by: str) -> Path:
    return atomic_write.draft_path(source, f"{by} aside")


def _copy_and_fsync(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
    _fsync_files(target)


def _fsync_files(path: Path) -> None:
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
