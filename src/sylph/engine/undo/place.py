"""One workspace as this process knows it: its last view, kept on the disk so that the next process begins from it."""

import hashlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from sylph.engine.sealed import Key, closed, opened, unsealed
from sylph.engine.undo.contents import Contents, private
from sylph.engine.undo.view import Entries, Entry, Rules, TooMany, look

# A workspace with too many files is not looked through again for so many seconds.
PATIENCE = 600.0
# A view that is no larger is looked at right away; for a larger one a thread is worth its while.
SMALL = 200


class Saved(msgspec.Struct, array_like=True):
    """A view on the disk: of everything, or of what is below `tops`."""

    root: bytes
    tops: list[bytes] | None
    paths: list[bytes]
    entries: list[Entry]

    def view(self) -> Entries:
        return dict(zip(self.paths, self.entries, strict=True))


class Place:
    def __init__(self, root: bytes, folder: Path, rules: Rules, contents: Contents) -> None:
        self.root, self._rules, self._contents = root, rules, contents
        self.name = hashlib.blake2b(root, digest_size=8).hexdigest()
        self.file = folder / "views" / self.name
        self._entries: Entries | None = None
        self._kept: Entries | None = None
        self._swept = self._inode = -1
        self._mutex = threading.Lock()
        self._refused = -PATIENCE

    @property
    def small(self) -> bool:
        return self._entries is not None and len(self._entries) <= SMALL

    @property
    def known(self) -> bool:
        return self._entries is not None

    @property
    def refused(self) -> bool:
        """Whether there were too many files a moment ago."""
        return time.monotonic() - self._refused < PATIENCE

    def look(self, tops: Sequence[bytes] | None = None) -> Entries:
        """What is there now. Raises TooMany, OSError."""
        if tops is not None:
            return look(self.root, self._entries or {}, self._rules, self._contents, tops)
        with self._mutex:
            try:
                self._entries = look(self.root, self._trusted(), self._rules, self._contents)
            except TooMany:
                self._refused = time.monotonic()
                raise
            return self._entries

    def keep(self, entries: Entries) -> None:
        """The view is on the disk when this returns. One that says the same is not written again."""
        with self._mutex:
            if self._kept is not None and same(self._kept, entries):
                return
            saved = Saved(self.root, None, list(entries), list(entries.values()))
            self._inode = write(self.file, saved, self._contents.key)
            self._kept = entries

    def link(self, name: Path) -> bool:
        """The view that was kept once more under another name, without a copy; False where that cannot be had."""
        name.unlink(missing_ok=True)
        private(name.parent)
        with suppress(OSError):
            os.link(self.file, name)
            # Another process may have kept a view of its own meanwhile.
            return name.stat().st_ino == self._inode
        return False

    def _trusted(self) -> Mapping[bytes, Entry]:
        """What is known already, and kept: contents may have been swept away meanwhile."""
        if self._entries is None:
            saved = read(self.file, self._contents.key)
            self._entries = self._kept = saved.view() if saved and saved.root == self.root else None
        elif self._swept == self._contents.swept():
            return self._entries
        self._swept = self._contents.swept()
        known = self._contents.digests() if self._entries else set[bytes]()
        entries = self._entries or {}
        return {path: entry for path, entry in entries.items() if not entry.digest or entry.digest in known}


def same(one: Mapping[bytes, Entry], other: Mapping[bytes, Entry]) -> bool:
    return one is other or (len(one) == len(other) and all(other.get(path) == entry for path, entry in one.items()))


def write(file: Path, saved: Saved, key: Key) -> int:
    """Puts a view into a file, whole; returns the number the file system knows it by."""
    data = closed(msgspec.msgpack.encode(saved), key())
    draft = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        private(file.parent)
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


def read(file: Path, key: Key = unsealed) -> Saved | None:
    """A view; None where there is none, or none that can be read."""
    with suppress(FileNotFoundError, msgspec.DecodeError, ValueError):
        return msgspec.msgpack.decode(opened(file.read_bytes(), key()), type=Saved)
    return None
