"""Contents of files by their digest, in a few append-only packs that all processes share."""

import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sylph.engine.sealed import Key, derived, sealed, unsealed

SIZE = 20
# digest, offset, length
ROW = struct.Struct(f">{SIZE}sQQ")
FULL = 256_000_000
BATCH = 4_000_000
# So much new content is flushed to the disk before a call; more of it (a first look) is left to the system.
FLUSHED = 16_000_000


def private(folder: Path) -> None:
    """Makes a folder that is its owner's alone, and those on the way to it."""
    if not folder.is_dir():
        private(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def digest_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=SIZE).digest()


class Contents:
    """Adding is safe between threads and processes; what a kill leaves half written is never referred to."""

    def __init__(self, folder: Path, key: Key = unsealed) -> None:
        self.folder, self.key = folder, key
        self._mutex = threading.Lock()
        self._where: dict[bytes, tuple[str, int, int]] = {}
        self._read: dict[str, int] = {}
        self._inodes: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._unsynced = 0

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Keeps contents that are not kept yet. Raises OSError."""
        with self._mutex, self._locked():
            self._look()
            fresh: dict[bytes, bytes] = {}
            size = 0
            for digest, data in items:
                if digest in self._where or digest in fresh:
                    continue
                fresh[digest] = data
                size += len(data)
                if size >= BATCH:
                    self._append(fresh)
                    fresh, size = {}, 0
            if fresh:
                self._append(fresh)

    def get(self, digest: bytes) -> bytes | None:
        """The content; None where it is not kept, or not what it was."""
        with self._mutex:
            for again in (False, True):
                if again or digest not in self._where:
                    self._look()
                if (place := self._where.get(digest)) and (data := self._load(*place)) is not None:
                    return self._plain(digest, data)
        return None

    def _sealed(self, digest: bytes, data: bytes) -> bytes:
        """Files may hold secrets, and must come back to the byte: only this home can read what lies here."""
        key = self.key()
        return sealed(data, derived(key, digest)) if key else data

    def _plain(self, digest: bytes, kept: bytes) -> bytes | None:
        """What was kept, if that is what it is; what older versions have kept is not sealed."""
        data = self._sealed(digest, kept)
        if digest_of(data) == digest:
            return data
        return kept if digest_of(kept) == digest else None

    def has(self, digests: Iterable[bytes]) -> bool:
        with self._mutex:
            wanted = set(digests)
            if not wanted <= self._where.keys():
                self._look()
            return wanted <= self._where.keys()

    @property
    def dirty(self) -> bool:
        return bool(self._dirty)

    def sync(self) -> None:
        """What was added is on the disk when this returns; a very large lot is left to the system."""
        with self._mutex:
            names, self._dirty = self._dirty, set()
            unsynced, self._unsynced = self._unsynced, 0
        for name in names if unsynced <= FLUSHED else ():
            for suffix in (".pack", ".idx"):
                _flush(self.folder / f"{name}{suffix}")

    def digests(self) -> set[bytes]:
        with self._mutex:
            self._look()
            return set(self._where)

    def swept(self) -> int:
        """Changes with every sweep."""
        try:
            return (self.folder / "swept").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def keep(self, live: set[bytes]) -> int:
        """Forgets every content that is not in `live`; returns how many bytes that frees."""
        with self._mutex, self._locked():
            self._look()
            freed = 0
            for name in self._names():
                rows = [(digest, at) for digest, at in self._where.items() if at[0] == name]
                kept = [(digest, at) for digest, at in rows if digest in live]
                whole = (self.folder / f"{name}.pack").stat().st_size
                if sum(at[2] for _, at in kept) < whole:
                    freed += whole - self._rewrite(name, kept)
            self._forget()
            (self.folder / "swept").unlink(missing_ok=True)
            (self.folder / "swept").touch(0o600)
            return freed

    @contextmanager
    def _locked(self) -> Generator[None]:
        private(self.folder)
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _names(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.idx"))

    def _look(self) -> None:
        """Reads what other processes have added since, and forgets all where one has swept."""
        names = self._names()
        found = {name: (self.folder / f"{name}.idx").stat().st_ino for name in names}
        if any(found.get(name) != inode for name, inode in self._inodes.items()):
            self._forget()
        for name in names:
            self._inodes[name] = found[name]
            with (self.folder / f"{name}.idx").open("rb") as file:
                file.seek(self._read.get(name, 0))
                data = file.read()
            whole = len(data) - len(data) % ROW.size
            for digest, offset, length in ROW.iter_unpack(data[:whole]):
                self._where[digest] = (name, offset, length)
            self._read[name] = self._read.get(name, 0) + whole

    def _forget(self) -> None:
        self._where, self._read, self._inodes = {}, {}, {}

    def _append(self, fresh: dict[bytes, bytes]) -> None:
        name = self._open_pack()
        pack, index = self.folder / f"{name}.pack", self.folder / f"{name}.idx"
        with _appending(pack) as file:
            offset = file.seek(0, os.SEEK_END)
            file.write(b"".join(self._sealed(digest, data) for digest, data in fresh.items()))
        rows: list[bytes] = []
        for digest, data in fresh.items():
            rows.append(ROW.pack(digest, offset, len(data)))
            self._where[digest] = (name, offset, len(data))
            self._unsynced += len(data)
            offset += len(data)
        with _appending(index) as file:
            # A row that a kill left half written goes.
            file.truncate(file.seek(0, os.SEEK_END) // ROW.size * ROW.size)
            file.write(b"".join(rows))
        self._read[name] = self._read.get(name, 0) + len(rows) * ROW.size
        self._inodes[name] = index.stat().st_ino
        self._dirty.add(name)

    def _open_pack(self) -> str:
        names = self._names()
        if names and (self.folder / f"{names[-1]}.pack").stat().st_size < FULL:
            return names[-1]
        return f"{int(names[-1]) + 1 if names else 1:06d}"

    def _rewrite(self, name: str, kept: Sequence[tuple[bytes, tuple[str, int, int]]]) -> int:
        """A new pack with only these contents takes its place; a kill in between leaves both."""
        size, rows = 0, list[bytes]()
        fresh = f"{int(self._names()[-1]) + 1:06d}"
        if kept:
            with _appending(self.folder / f"{fresh}.pack") as file:
                file.truncate(0)
                for digest, place in kept:
                    data = self._load(*place) or b""
                    if (plain := self._plain(digest, data)) is not None:
                        file.write(self._sealed(digest, plain))
                        rows.append(ROW.pack(digest, size, len(data)))
                        size += len(data)
            _flush(self.folder / f"{fresh}.pack")
            with _appending(self.folder / f"{fresh}.idx") as file:
                file.write(b"".join(rows))
            _flush(self.folder / f"{fresh}.idx")
        (self.folder / f"{name}.idx").unlink()
        (self.folder / f"{name}.pack").unlink()
        return size

    def _load(self, name: str, offset: int, length: int) -> bytes | None:
        try:
            with (self.folder / f"{name}.pack").open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            return None


def _appending(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")


def _flush(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)
