"""Files that only their owner can read, replaced whole and found again after a crash."""

import errno
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from sylph.core.errors import StoreError
from sylph.providers.credentials.entry import CredentialEntry, StoredCredentialKind, check_provider_name

OTHER_USERS_MODE = 0o077
# No credential is longer than this.
FILE_LIMIT = 1 << 18
logger = logging.getLogger(__name__)


class CredentialFolder:
    """The folder of credentials. What others could read is mended and told; what is not ours is refused."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def list_names(self) -> Iterator[tuple[str, StoredCredentialKind]]:
        """Which credentials there are: the names of files, nothing is opened."""
        try:
            found = sorted(entry.name for entry in os.scandir(self.root))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            logger.warning("The credentials in %s cannot be looked at: %s.", self.root, _explain_error(error))
            return
        for name in found:
            # A draft without its file is what a crash has left: it counts.
            provider, _, kind = name.removesuffix(".new").removesuffix(".json").rpartition(".")
            whole = name.endswith(".json") or f"{provider}.{kind}.json" not in found
            if not (provider and name.endswith((".json", ".json.new")) and whole):
                continue
            match kind:
                case "login" | "borrowed" | "key":
                    yield provider, kind
                case _:
                    continue

    def has_entry(self, provider: str, kind: StoredCredentialKind) -> bool:
        path = self.entry_path(provider, kind)
        return path.exists() or draft_path(path).exists()

    def entry_path(self, provider: str, kind: StoredCredentialKind) -> Path:
        return self.root / f"{check_provider_name(provider)}.{kind}.json"

    def lock_path(self, provider: str) -> Path:
        """The file that whoever changes something of this provider locks."""
        self.ensure_folder()
        return self.root / f"{check_provider_name(provider)}.lock"

    def read_entry(self, provider: str, kind: StoredCredentialKind) -> CredentialEntry | None:
        """The entry, or what a crash left of a newer one: a draft that is whole. Raises StoreError for damaged ones."""
        path = self.entry_path(provider, kind)
        draft = self._parse_draft(draft_path(path), provider, kind)
        try:
            kept = self._parse_entry(path, provider, kind)
        except StoreError:
            if draft is None:
                raise
            return draft
        return draft if draft and (kept is None or draft.serial > kept.serial) else kept

    def write_entry(self, entry: CredentialEntry) -> None:
        """On the disk when this returns. Raises OSError, and then what was there is there."""
        path = self.entry_path(entry.provider, entry.kind)
        self.ensure_folder()
        with suppress(StoreError):
            draft = self._parse_draft(draft_path(path), entry.provider, entry.kind)
            if draft and self.read_entry(entry.provider, entry.kind) == draft:
                # A crash came before the last step of a writing: made now, for until then the draft is all there is.
                draft_path(path).replace(path)
        self.write_file(path, msgspec.json.format(msgspec.json.encode(entry), indent=1))

    def write_file(self, path: Path, data: bytes) -> None:
        self.ensure_folder()
        draft = draft_path(path)
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(data)
            file.flush()
            os.fsync(fd)
        draft.replace(path)
        self._sync_folder()

    def remove_entry(self, provider: str, kind: StoredCredentialKind) -> bool:
        path = self.entry_path(provider, kind)
        there = self.has_entry(provider, kind)
        draft_path(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        if there:
            self._sync_folder()
        return there

    def read_file(self, path: Path) -> bytes | None:
        """The content of one of our files; None where there is none."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable_error(path, _explain_error(error)) from error
        with os.fdopen(fd, "rb") as file:
            _fix_permissions(path, fd, directory=False)
            data = file.read(FILE_LIMIT + 1)
        if len(data) > FILE_LIMIT:
            raise _unusable_error(path, f"it is longer than {FILE_LIMIT:,} bytes")
        return data

    def ensure_folder(self) -> None:
        """The folder, ours alone."""
        try:
            for folder in (self.root.parent, self.root):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.check_folder()
        except OSError as error:
            raise _unusable_error(self.root, _explain_error(error)) from error

    def check_folder(self) -> None:
        """Nobody else looks into the folder, or it is mended and told."""
        try:
            fd = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unusable_error(self.root, _explain_error(error)) from error
        try:
            _fix_permissions(self.root, fd, directory=True)
        finally:
            os.close(fd)

    def _parse_entry(self, path: Path, provider: str, kind: StoredCredentialKind) -> CredentialEntry | None:
        self.check_folder()
        data = self.read_file(path)
        if data is None:
            return None
        try:
            entry = msgspec.json.decode(data, type=CredentialEntry)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _unusable_error(path, f"it is damaged ({error})") from error
        if entry.v != 1:
            raise _unusable_error(path, "a newer Sylph has written it")
        if (entry.provider, entry.kind) != (provider, kind):
            raise _unusable_error(path, f"it belongs to {entry.provider}")
        return entry

    def _parse_draft(self, draft: Path, provider: str, kind: StoredCredentialKind) -> CredentialEntry | None:
        try:
            return self._parse_entry(draft, provider, kind)
        except StoreError:
            # It was not whole when the process died; then what it was to replace is still there.
            return None

    def _sync_folder(self) -> None:
        """The rename itself reaches the disk."""
        fd = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def draft_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _fix_permissions(path: Path, fd: int, *, directory: bool) -> None:
    found = os.fstat(fd)
    kind = stat.S_ISDIR(found.st_mode) if directory else stat.S_ISREG(found.st_mode)
    if not kind:
        raise _unusable_error(path, f"it is not a {'folder' if directory else 'file'}")
    if found.st_uid != os.geteuid():
        raise _unusable_error(path, "it belongs to another user")
    if found.st_mode & OTHER_USERS_MODE:
        try:
            os.fchmod(fd, 0o700 if directory else 0o600)
        except OSError as error:
            raise _unusable_error(
                path, f"other users can read it, and that cannot be changed ({_explain_error(error)})"
            ) from error
        logger.warning(
            "%s could be read by other users of this machine; that is mended now. "
            "If somebody may have read it, get a new key from the service.",
            path,
        )


def _explain_error(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "it is a link, which could lead anywhere"
    return error.strerror or str(error)


def _unusable_error(path: Path, why: str) -> StoreError:
    return StoreError(
        f"The credentials at {path} cannot be used: {why}.",
        kind="credentials",
        details={"path": path},
        next=["sylph connect status", "sylph disconnect PROVIDER  removes what is damaged, then connect again"],
    )
