"""Earlier versions of a small text file, kept beside it: the newest few."""

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from sylph.core.errors import NotFound, UserError

MAX_VERSIONS = 20
# Once they lay where the chat keeps what is typed.
VERSIONS_FOLDER, LEGACY_FOLDER = "versions", "history"


class FileVersion(Struct, frozen=True, kw_only=True):
    """A text that counted until `replaced`, in milliseconds since 1970."""

    id: str
    replaced: int
    bytes: int


def content_tag(text: str) -> str:
    """Names a text: the same text has the same tag."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class VersionedFile:
    def __init__(self, file: Path, folder: Path) -> None:
        self.file, self._folder = file, folder

    def read_text(self) -> str | None:
        """What the file says now; None where there is none."""
        try:
            return self.file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"{self.file} cannot be read: {error.strerror}.", kind="io") from error

    def write(self, text: str | None) -> None:
        """The whole text or nothing of it; None takes the file away. What was there before is kept."""
        try:
            if (before := self.read_text()) is not None and before != text:
                self._save_version(before)
        except OSError as error:
            raise UserError(
                f"{_blocking_path(self._folder)}: {error.strerror}. "
                f"The text of before cannot be kept there, so {self.file.name} was left as it is.",
                kind="io",
                next=["sylph doctor"],
            ) from error
        try:
            if text is None:
                self.file.unlink(missing_ok=True)
            else:
                _write_atomically(self.file, text)
        except OSError as error:
            raise UserError(f"{self.file} cannot be written: {error.strerror}.", kind="io") from error

    def list_versions(self) -> list[FileVersion]:
        """The newest first."""
        found = [_describe_version(path) for path in self._folder.glob("*.old")] if self._folder.is_dir() else []
        return sorted(found, key=lambda one: one.id, reverse=True)

    def read_version(self, id: str) -> str:
        known = {one.id for one in self.list_versions()}
        if id not in known:
            raise NotFound(f"There is no earlier version {id!r}.", next=["the list of versions tells their ids"])
        return (self._folder / f"{id}.old").read_text(encoding="utf-8", errors="replace")

    def _save_version(self, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_atomically(self._folder / f"{time.time_ns() // 1_000:016d}.old", text)
        for old in self.list_versions()[MAX_VERSIONS:]:
            (self._folder / f"{old.id}.old").unlink(missing_ok=True)


def versions_folder(home: Path, name: str) -> Path:
    """Where the earlier versions of a file lie. What an older Sylph kept elsewhere is taken along."""
    old, new = home / LEGACY_FOLDER, home / VERSIONS_FOLDER / name
    if (old / name).is_dir():
        with suppress(OSError):
            new.mkdir(parents=True, exist_ok=True, mode=0o700)
            for each in (old / name).glob("*.old"):
                each.rename(new / each.name)
            (old / name).rmdir()
    if old.is_dir():
        # Only when nothing is left in it.
        with suppress(OSError):
            old.rmdir()
    return new


def _blocking_path(folder: Path) -> Path:
    """What is no folder, where a folder is wanted; the folder itself where it is something else."""
    return next((each for each in (folder, *folder.parents) if each.exists() and not each.is_dir()), folder)


def _describe_version(path: Path) -> FileVersion:
    moment = int(path.stem) // 1000 if path.stem.isdecimal() else 0
    return FileVersion(id=path.stem, replaced=moment, bytes=path.stat().st_size)


def _write_atomically(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as fresh:
        fresh.write(text)
        fresh.flush()
        os.fsync(fresh.fileno())
    Path(name).replace(path)
