"""Where a workspace's commits go, and as whom: set by the user, kept in Sylph's home, used by the git tool."""

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import UserError
from sylph.core.permission.path_policy import real_path
from sylph.tools.files import atomic_write


class GitRemote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is set for one workspace. Its key, if it has one, lies beside it and is in no answer."""

    root: str
    name: str = "origin"
    url: str = ""
    branch: str = ""
    user: str = ""
    email: str = ""
    known_hosts: tuple[str, ...] = ()

    @property
    def uses_ssh(self) -> bool:
        return bool(self.url) and not self.url.startswith("https://")

    @property
    def identity_options(self) -> tuple[str, ...]:
        """Options for git: who commits."""
        told = (("user.name", self.user), ("user.email", self.email))
        return tuple(word for key, value in told if value for word in ("-c", f"{key}={value}"))


class GitRemoteStore:
    """All that is set, a file for each workspace; nobody but the user reads it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, root: Path) -> GitRemote | None:
        """What is set for a folder, which has its links followed. Raises UserError for a damaged file."""
        try:
            data = self._file_path(root, "json").read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(data, type=GitRemote)
        except msgspec.DecodeError as error:
            raise UserError(
                f"{self._file_path(root, 'json')} is damaged: {error}.", kind="config", next=["set the remote anew"]
            ) from error

    def find_nearest(self, *folders: Path) -> GitRemote | None:
        """What is set for the first of these that has something."""
        return next((found for each in folders if (found := self.load(real_path(each)))), None)

    def save(self, remote: GitRemote) -> None:
        self.write_secret(self._file_path(Path(remote.root), "json"), msgspec.json.encode(remote))

    def remove(self, root: Path) -> bool:
        there = self._file_path(root, "json").exists()
        for kind in ("json", "key", "pub"):
            self._file_path(root, kind).unlink(missing_ok=True)
        return there

    def key_path(self, root: Path) -> Path | None:
        """The private key; None where there is none."""
        file = self._file_path(root, "key")
        return file if file.exists() else None

    def public_key(self, root: Path) -> str:
        """The public half of the key."""
        try:
            return self._file_path(root, "pub").read_text().strip()
        except FileNotFoundError:
            return ""

    def secret_folder(self) -> Path:
        """A folder for what is secret for a moment."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder

    def save_key(self, root: Path, private: bytes, public: str) -> None:
        self.write_secret(self._file_path(root, "key"), private)
        self.write_secret(self._file_path(root, "pub"), f"{public}\n".encode())

    def delete_key(self, root: Path) -> None:
        for kind in ("key", "pub"):
            self._file_path(root, kind).unlink(missing_ok=True)

    def write_secret(self, file: Path, data: bytes) -> None:
        """On the disk, and never readable for others, not for a moment."""
        self.secret_folder()
        draft = file.with_name(f"{file.name}.new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(descriptor)
        draft.replace(file)
        atomic_write.fsync_folder(self._folder)

    def _file_path(self, root: Path, kind: str) -> Path:
        return self._folder / f"{hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()}.{kind}"
