"""Files and folders moved and copied by their open folders, so that no link on the way can lead elsewhere."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from errno import EXDEV
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG

from msgspec import Struct

from sylph.core.errors import UserError

MAX_ENTRIES = 100_000
MAX_BYTES = 4_000_000_000
CHUNK = 1_048_576


class FileTreeEntry(Struct, frozen=True):
    """Something below a folder: its path from there on, and the open folder it is in."""

    path: str
    name: str
    fd: int
    stat: os.stat_result


def walk_folder(fd: int) -> Iterator[FileTreeEntry]:
    """All that is in an open folder, folders before what is in them. Links are not followed."""
    for place, folders, files, here in os.fwalk(".", dir_fd=fd, follow_symlinks=False):
        folders.sort()
        for name in (*folders, *sorted(files)):
            with suppress(FileNotFoundError):
                stat = os.stat(name, dir_fd=here, follow_symlinks=False)
                yield FileTreeEntry(os.path.normpath(os.path.join(place, name)), name, here, stat)


def move_entry(fd: int, name: str, to: int, new: str) -> None:
    """Raises OSError, UserError; then all is where it was."""
    try:
        os.rename(name, new, src_dir_fd=fd, dst_dir_fd=to)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        copy_entry(fd, name, to, new)
        remove_entry(fd, name)
    for each in (fd, to):
        sync_folder(each)


def copy_entry(fd: int, name: str, to: int, new: str) -> None:
    """The whole copy, or nothing. Links stay links."""
    try:
        _copy_tree(fd, name, to, new)
        sync_folder(to)
    except BaseException:
        remove_entry(to, new)
        raise


def remove_entry(fd: int, name: str) -> None:
    with suppress(FileNotFoundError):
        if S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=fd)
        else:
            os.unlink(name, dir_fd=fd)


def sync_folder(fd: int) -> None:
    """The names in a folder reach the disk."""
    real = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=fd)
    try:
        os.fsync(real)
    finally:
        os.close(real)


def _copy_tree(fd: int, name: str, to: int, new: str) -> None:
    stat = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if not S_ISDIR(stat.st_mode):
        _copy_file(FileTreeEntry(name, name, fd, stat), to, new)
        return
    source = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        _check_tree_size(source)
        os.mkdir(new, 0o700, dir_fd=to)
        target = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=to)
        try:
            modes = [(".", S_IMODE(stat.st_mode))]
            for each in walk_folder(source):
                if S_ISDIR(each.stat.st_mode):
                    os.mkdir(each.path, 0o700, dir_fd=target)
                    modes.append((each.path, S_IMODE(each.stat.st_mode)))
                else:
                    _copy_file(each, target, each.path)
            # Last, and the deepest first: a folder may be one that nothing can be written into.
            for path, mode in reversed(modes):
                os.chmod(path, mode, dir_fd=target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_file(found: FileTreeEntry, to: int, new: str) -> None:
    if S_ISLNK(found.stat.st_mode):
        os.symlink(os.readlink(found.name, dir_fd=found.fd), new, dir_fd=to)
        return
    if not S_ISREG(found.stat.st_mode):
        raise UserError(f"{found.name} is a device, a pipe or a socket.", kind="not_a_file", next=["leave it out"])
    source = os.open(found.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=found.fd)
    with os.fdopen(source, "rb") as content:
        target = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=to)
        with os.fdopen(target, "wb") as file:
            shutil.copyfileobj(content, file, CHUNK)
            file.flush()
            os.fchmod(file.fileno(), S_IMODE(found.stat.st_mode))
            os.utime(file.fileno(), ns=(found.stat.st_atime_ns, found.stat.st_mtime_ns))
            os.fsync(file.fileno())


def _check_tree_size(fd: int) -> None:
    size = 0
    for files, each in enumerate(walk_folder(fd), 1):
        size += each.stat.st_size if S_ISREG(each.stat.st_mode) else 0
        if files > MAX_ENTRIES or size > MAX_BYTES:
            raise UserError(
                f"It is more than {MAX_ENTRIES:,} files or {MAX_BYTES:,} bytes.",
                kind="too_large",
                next=["take a part of it"],
            )
