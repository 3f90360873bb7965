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

from sylph.disk.encryption import KeySource, apply_keystream, derive_key, no_key

SIZE = 20
# digest, offset, length
ROW = struct.Struct(f">{SIZE}sQQ")
MAX_PACK_SIZE = 256_000_000
BATCH_SIZE = 4_000_000
# So much new content is flushed to the disk before a call; more of it (a first look) is left to the system.
MAX_SYNCED = 16_000_000


def make_private_folder(folder: Path) -> None:
    """Makes a folder that is its owner's alone, and those on the way to it."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def content_digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=SIZE).digest()


class FileContentStore:
    """Adding is safe between threads and processes; what a kill leaves half written is never referred to."""

    def __init__(self, folder: Path, key: KeySource = no_key) -> None:
        self.folder, self.key = folder, key
        self._mutex = threading.Lock()
        self._where: dict[bytes, tuple[str, int, int]] = {}
        self._read: dict[str, int] = {}
        self._inodes: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._unsynced = 0

    def put_contents(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Keeps contents that are not kept yet. Raises OSError."""
        with self._mutex, self._exclusive_lock():
            self._read_indexes()
            fresh: dict[bytes, bytes] = {}
            size = 0
            for digest, data in items:
                if digest in self._where or digest in fresh:
                    continue
                fresh[digest] = data
                size += len(data)
                if size >= BATCH_SIZE:
                    self._append_contents(fresh)
                    fresh, size = {}, 0
            if fresh:
                self._append_contents(fresh)

    def get(self, digest: bytes) -> bytes | None:
        """The content; None where it is not kept, or not what it was."""
        with self._mutex:
            for again in (False, True):
                if again or digest not in self._where:
                    self._read_indexes()
                if (place := self._where.get(digest)) and (data := self._load_content(*place)) is not None:
                    return self._decrypt_content(digest, data)
        return None

    def _encrypt_content(self, digest: bytes, data: bytes) -> bytes:
        """Files may hold secrets, and must come back to the byte: only this home can read what lies here."""
        key = self.key()
        return apply_keystream(data, derive_key(key, digest)) if key else data

    def _decrypt_content(self, digest: bytes, kept: bytes) -> bytes | None:
        """What was kept, if that is what it is; what older versions have kept is not sealed."""
        data = self._encrypt_content(digest, kept)
        if content_digest(data) == digest:
            return data
        return kept if content_digest(kept) == digest else None

    def has_all(self, digests: Iterable[bytes]) -> bool:
        with self._mutex:
            wanted = set(digests)
            if not wanted <= self._where.keys():
                self._read_indexes()
            return wanted <= self._where.keys()

    @property
    def dirty(self) -> bool:
        return bool(self._dirty)

    def sync(self) -> None:
        """What was added is on the disk when this returns; a very large lot is left to the system."""
        with self._mutex:
            names, self._dirty = self._dirty, set()
            unsynced, self._unsynced = self._unsynced, 0
        for name in names if unsynced <= MAX_SYNCED else ():
            for suffix in (".pack", ".idx"):
                _sync_file(self.folder / f"{name}{suffix}")

    def list_digests(self) -> set[bytes]:
        with self._mutex:
            self._read_indexes()
            return set(self._where)

    def last_sweep(self) -> int:
        """Changes with every sweep."""
        try:
            return (self.folder / "swept").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def retain_only(self, live: set[bytes]) -> int:
        """Forgets every content that is not in `live`; returns how many bytes that frees."""
        with self._mutex, self._exclusive_lock():
            self._read_indexes()
            freed = 0
            for name in self._pack_names():
                rows = [(digest, at) for digest, at in self._where.items() if at[0] == name]
                kept = [(digest, at) for digest, at in rows if digest in live]
                whole = (self.folder / f"{name}.pack").stat().st_size
                if sum(at[2] for _, at in kept) < whole:
                    freed += whole - self._rewrite_pack(name, kept)
            self._clear_index()
            (self.folder / "swept").unlink(missing_ok=True)
            (self.folder / "swept").touch(0o600)
            return freed

    @contextmanager
    def _exclusive_lock(self) -> Generator[None]:
        make_private_folder(self.folder)
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _pack_names(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.idx"))

    def _read_indexes(self) -> None:
        """Reads what other processes have added since, and forgets all where one has swept."""
        names = self._pack_names()
        found = {name: (self.folder / f"{name}.idx").stat().st_ino for name in names}
        if any(found.get(name) != inode for name, inode in self._inodes.items()):
            self._clear_index()
        for name in names:
            self._inodes[name] = found[name]
            with (self.folder / f"{name}.idx").open("rb") as file:
                file.seek(self._read.get(name, 0))
                data = file.read()
            whole = len(data) - len(data) % ROW.size
            for digest, offset, length in ROW.iter_unpack(data[:whole]):
                self._where[digest] = (name, offset, length)
            self._read[name] = self._read.get(name, 0) + whole

    def _clear_index(self) -> None:
        self._where, self._read, self._inodes = {}, {}, {}

    def _append_contents(self, fresh: dict[bytes, bytes]) -> None:
        name = self._current_pack()
        pack, index = self.folder / f"{name}.pack", self.folder / f"{name}.idx"
        with _open_for_append(pack) as file:
            offset = file.seek(0, os.SEEK_END)
            file.write(b"".join(self._encrypt_content(digest, data) for digest, data in fresh.items()))
        rows: list[bytes] = []
        for digest, data in fresh.items():
            rows.append(ROW.pack(digest, offset, len(data)))
            self._where[digest] = (name, offset, len(data))
            self._unsynced += len(data)
            offset += len(data)
        with _open_for_append(index) as file:
            # A row that a kill left half written goes.
            file.truncate(file.seek(0, os.SEEK_END) // ROW.size * ROW.size)
            file.write(b"".join(rows))
        self._read[name] = self._read.get(name, 0) + len(rows) * ROW.size
        self._inodes[name] = index.stat().st_ino
        self._dirty.add(name)

    def _current_pack(self) -> str:
        names = self._pack_names()
        if names and (self.folder / f"{names[-1]}.pack").stat().st_size < MAX_PACK_SIZE:
            return names[-1]
        return f"{int(names[-1]) + 1 if names else 1:06d}"

    def _rewrite_pack(self, name: str, kept: Sequence[tuple[bytes, tuple[str, int, int]]]) -> int:
        """A new pack with only these contents takes its place; a kill in between leaves both."""
        size, rows = 0, list[bytes]()
        fresh = f"{int(self._pack_names()[-1]) + 1:06d}"
        if kept:
            with _open_for_append(self.folder / f"{fresh}.pack") as file:
                file.truncate(0)
                for digest, place in kept:
                    data = self._load_content(*place) or b""
                    if (plain := self._decrypt_content(digest, data)) is not None:
                        file.write(self._encrypt_content(digest, plain))
                        rows.append(ROW.pack(digest, size, len(data)))
                        size += len(data)
            _sync_file(self.folder / f"{fresh}.pack")
            with _open_for_append(self.folder / f"{fresh}.idx") as file:
                file.write(b"".join(rows))
            _sync_file(self.folder / f"{fresh}.idx")
        (self.folder / f"{name}.idx").unlink()
        (self.folder / f"{name}.pack").unlink()
        return size

    def _load_content(self, name: str, offset: int, length: int) -> bytes | None:
        try:
            with (self.folder / f"{name}.pack").open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            return None


def _open_for_append(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")


def _sync_file(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)
