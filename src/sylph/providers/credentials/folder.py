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
from sylph.providers.credentials.entry import Entry, Kind, named

OTHERS = 0o077
# No credential is longer than this.
LIMIT = 1 << 18
logger = logging.getLogger(__name__)


class Folder:
    """The folder of credentials. What others could read is mended and told; what is not ours is refused."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> Iterator[tuple[str, Kind]]:
        """Which credentials there are: the names of files, nothing is opened."""
        try:
            found = sorted(entry.name for entry in os.scandir(self.root))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            logger.warning("The credentials in %s cannot be looked at: %s.", self.root, _why(error))
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

    def has(self, provider: str, kind: Kind) -> bool:
        path = self.path(provider, kind)
        return path.exists() or draft_of(path).exists()

    def path(self, provider: str, kind: Kind) -> Path:
        return self.root / f"{named(provider)}.{kind}.json"

    def lock(self, provider: str) -> Path:
        """The file that whoever changes something of this provider locks."""
        self.made()
        return self.root / f"{named(provider)}.lock"

    def entry(self, provider: str, kind: Kind) -> Entry | None:
        """The entry, or what a crash left of a newer one: a draft that is whole. Raises StoreError for damaged ones."""
        path = self.path(provider, kind)
        draft = self._drafted(draft_of(path), provider, kind)
        try:
            kept = self._parsed(path, provider, kind)
        except StoreError:
            if draft is None:
                raise
            return draft
        return draft if draft and (kept is None or draft.serial > kept.serial) else kept

    def write(self, entry: Entry) -> None:
        """On the disk when this returns. Raises OSError, and then what was there is there."""
        path = self.path(entry.provider, entry.kind)
        self.made()
        with suppress(StoreError):
            draft = self._drafted(draft_of(path), entry.provider, entry.kind)
            if draft and self.entry(entry.provider, entry.kind) == draft:
                # A crash came before the last step of a writing: made now, for until then the draft is all there is.
                draft_of(path).replace(path)
        self.put(path, msgspec.json.format(msgspec.json.encode(entry), indent=1))

    def put(self, path: Path, data: bytes) -> None:
        self.made()
        draft = draft_of(path)
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(data)
            file.flush()
            os.fsync(fd)
        draft.replace(path)
        self._settle()

    def remove(self, provider: str, kind: Kind) -> bool:
        path = self.path(provider, kind)
        there = self.has(provider, kind)
        draft_of(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        if there:
            self._settle()
        return there

    def read(self, path: Path) -> bytes | None:
        """The content of one of our files; None where there is none."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _bad(path, _why(error)) from error
        with os.fdopen(fd, "rb") as file:
            _mend(path, fd, directory=False)
            data = file.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise _bad(path, f"it is longer than {LIMIT:,} bytes")
        return data

    def made(self) -> None:
        """The folder, ours alone."""
        try:
            for folder in (self.root.parent, self.root):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.guard()
        except OSError as error:
            raise _bad(self.root, _why(error)) from error

    def guard(self) -> None:
        """Nobody else looks into the folder, or it is mended and told."""
        try:
            fd = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _bad(self.root, _why(error)) from error
        try:
            _mend(self.root, fd, directory=True)
        finally:
            os.close(fd)

    def _parsed(self, path: Path, provider: str, kind: Kind) -> Entry | None:
        self.guard()
        data = self.read(path)
        if data is None:
            return None
        try:
            entry = msgspec.json.decode(data, type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _bad(path, f"it is damaged ({error})") from error
        if entry.v != 1:
            raise _bad(path, "a newer Sylph has written it")
        if (entry.provider, entry.kind) != (provider, kind):
            raise _bad(path, f"it belongs to {entry.provider}")
        return entry

    def _drafted(self, draft: Path, provider: str, kind: Kind) -> Entry | None:
        try:
            return self._parsed(draft, provider, kind)
        except StoreError:
            # It was not whole when the process died; then what it was to replace is still there.
            return None

    def _settle(self) -> None:
        """The rename itself reaches the disk."""
        fd = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def draft_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _mend(path: Path, fd: int, *, directory: bool) -> None:
    found = os.fstat(fd)
    kind = stat.S_ISDIR(found.st_mode) if directory else stat.S_ISREG(found.st_mode)
    if not kind:
        raise _bad(path, f"it is not a {'folder' if directory else 'file'}")
    if found.st_uid != os.geteuid():
        raise _bad(path, "it belongs to another user")
    if found.st_mode & OTHERS:
        try:
            os.fchmod(fd, 0o700 if directory else 0o600)
        except OSError as error:
            raise _bad(path, f"other users can read it, and that cannot be changed ({_why(error)})") from error
        logger.warning(
            "%s could be read by other users of this machine; that is mended now. "
            "If somebody may have read it, get a new key from the service.",
            path,
        )


def _why(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "it is a link, which could lead anywhere"
    return error.strerror or str(error)


def _bad(path: Path, why: str) -> StoreError:
    return StoreError(
        f"The credentials at {path} cannot be used: {why}.",
        kind="credentials",
        details={"path": path},
        next=["sylph connect status", "sylph disconnect PROVIDER  removes what is damaged, then connect again"],
    )
