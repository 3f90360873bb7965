"""One workspace as this process knows it: its last view, kept on the disk so that the next process begins from it."""

import hashlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from sylph.disk.encryption import KeySource, decrypt_bytes, encrypt_bytes, no_key
from sylph.engine.undo.content_store import FileContentStore, make_private_folder
from sylph.engine.undo.workspace_scan import CheckpointPolicy, PathEntries, PathEntry, TooManyFiles, scan_workspace

# A workspace with too many files is not looked through again for so many seconds.
RETRY_SECONDS = 600.0
# A view that is no larger is looked at right away; for a larger one a thread is worth its while.
SMALL_COUNT = 200


class SavedScan(msgspec.Struct, array_like=True):
    """A view on the disk: of everything, or of what is below `tops`."""

    root: bytes
    tops: list[bytes] | None
    paths: list[bytes]
    entries: list[PathEntry]

    def to_entries(self) -> PathEntries:
        return dict(zip(self.paths, self.entries, strict=True))


class WorkspaceTracker:
    def __init__(self, root: bytes, folder: Path, rules: CheckpointPolicy, contents: FileContentStore) -> None:
        self.root, self._rules, self._contents = root, rules, contents
        self.name = hashlib.blake2b(root, digest_size=8).hexdigest()
        self.file = folder / "views" / self.name
        self._entries: PathEntries | None = None
        self._kept: PathEntries | None = None
        self._swept = self._inode = -1
        self._mutex = threading.Lock()
        self._refused = -RETRY_SECONDS

    @property
    def is_small(self) -> bool:
        return self._entries is not None and len(self._entries) <= SMALL_COUNT

    @property
    def is_known(self) -> bool:
        return self._entries is not None

    @property
    def is_refused(self) -> bool:
        """Whether there were too many files a moment ago."""
        return time.monotonic() - self._refused < RETRY_SECONDS

    def scan_files(self, tops: Sequence[bytes] | None = None) -> PathEntries:
        """What is there now. Raises TooMany, OSError."""
        if tops is not None:
            return scan_workspace(self.root, self._entries or {}, self._rules, self._contents, tops)
        with self._mutex:
            try:
                self._entries = scan_workspace(self.root, self._trusted_entries(), self._rules, self._contents)
            except TooManyFiles:
                self._refused = time.monotonic()
                raise
            return self._entries

    def save_entries(self, entries: PathEntries) -> None:
        """The view is on the disk when this returns. One that says the same is not written again."""
        with self._mutex:
            if self._kept is not None and same_entries(self._kept, entries):
                return
            saved = SavedScan(self.root, None, list(entries), list(entries.values()))
            self._inode = write_scan(self.file, saved, self._contents.key)
            self._kept = entries

    def link_saved(self, name: Path) -> bool:
        """The view that was kept once more under another name, without a copy; False where that cannot be had."""
        name.unlink(missing_ok=True)
        make_private_folder(name.parent)
        with suppress(OSError):
            os.link(self.file, name)
            # Another process may have kept a view of its own meanwhile.
            return name.stat().st_ino == self._inode
        return False

    def _trusted_entries(self) -> Mapping[bytes, PathEntry]:
        """What is known already, and kept: contents may have been swept away meanwhile."""
        if self._entries is None:
            saved = read_scan(self.file, self._contents.key)
            self._entries = self._kept = saved.to_entries() if saved and saved.root == self.root else None
        elif self._swept == self._contents.last_sweep():
            return self._entries
        self._swept = self._contents.last_sweep()
        known = self._contents.list_digests() if self._entries else set[bytes]()
        entries = self._entries or {}
        return {path: entry for path, entry in entries.items() if not entry.digest or entry.digest in known}


def same_entries(one: Mapping[bytes, PathEntry], other: Mapping[bytes, PathEntry]) -> bool:
    return one is other or (len(one) == len(other) and all(other.get(path) == entry for path, entry in one.items()))


def write_scan(file: Path, saved: SavedScan, key: KeySource) -> int:
    """Puts a view into a file, whole; returns the number the file system knows it by."""
    data = encrypt_bytes(msgspec.msgpack.encode(saved), key())
    draft = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        make_private_folder(file.parent)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            inode = os.fstat(fd).st_ino
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return inode


def read_scan(file: Path, key: KeySource = no_key) -> SavedScan | None:
    """A view; None where there is none, or none that can be read."""
    with suppress(FileNotFoundError, msgspec.DecodeError, ValueError):
        return msgspec.msgpack.decode(decrypt_bytes(file.read_bytes(), key()), type=SavedScan)
    return None
