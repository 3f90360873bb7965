"""New content that takes its place at once when it is whole. Until then it has no name: what is cut leaves nothing."""

import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from sylph.core.errors import UserError
from sylph.core.ids import new_id
from sylph.interfaces.http.files.filesystem.location import FileLocation, make_folders
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.tools.files import atomic_write


class AtomicFileWriter:
    """Blocks; raises OSError."""

    def __init__(self, spot: FileLocation) -> None:
        self._spot = spot
        self._name = f".sylph-{new_id(16)}.tmp"
        self._named = False
        self._fd = self._open_temporary()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _open_temporary(self) -> int:
        if hasattr(os, "O_TMPFILE"):
            with suppress(OSError):  # some file systems have none
                return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=self._spot.fd)
        self._named = True
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.open(self._name, flags, 0o666, dir_fd=self._spot.fd)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def commit(self, was: os.stat_result | None) -> os.stat_result:
        """Gives it its name: a free one, or that of `was`, if that has not changed since. On the disk afterwards."""
        if was:
            atomic_write.copy_owner_mode(self._fd, was)
        os.fsync(self._fd)
        folder = make_folders(self._spot.fd, self._spot.missing)
        try:
            if was is None:
                self._create_target(folder)
            else:
                self._replace_target(folder, was)
            _sync_folder(folder)
        finally:
            os.close(folder)
        return os.fstat(self._fd)

    def _create_target(self, folder: int) -> None:
        try:
            self._link_as(self._spot.name, folder)
        except FileExistsError as error:
            raise UserError(
                f"{self._spot.display_path} exists already.", kind="exists", next=["overwrite=true", "or another name"]
            ) from error

    def _replace_target(self, folder: int, was: os.stat_result) -> None:
        now = os.stat(self._spot.name, dir_fd=folder, follow_symlinks=False)
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (was.st_ino, was.st_size, was.st_mtime_ns):
            raise AccessDenied(
                f"Somebody changed {self._spot.display_path} meanwhile.", kind="changed", next=["read it again"]
            )
        if not self._named:
            self._link_as(self._name, folder)
            self._named = True
        os.rename(self._name, self._spot.name, src_dir_fd=self._spot.fd, dst_dir_fd=folder)
        self._named = False

    def _link_as(self, name: str, folder: int) -> None:
        if self._named:
            os.link(self._name, name, src_dir_fd=self._spot.fd, dst_dir_fd=folder, follow_symlinks=False)
        else:
            os.link(f"/proc/self/fd/{self._fd}", name, dst_dir_fd=folder, follow_symlinks=True)

    @property
    def fd(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._named:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._spot.fd)
        os.close(self._fd)


def _sync_folder(folder: int) -> None:
    """The name itself reaches the disk."""
    fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
