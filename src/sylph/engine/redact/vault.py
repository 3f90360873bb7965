"""Where the values behind placeholders are kept: one file of sealed lines beside the log, its owner's alone."""

import base64
import fcntl
import hashlib
import hmac
import os
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from sylph.disk.encryption import KEY_BYTES, apply_keystream, derive_key

NONCE, MAC = 12, 16
DAY = 86_400


class VaultEntry(msgspec.Struct, frozen=True, array_like=True):
    tag: str
    kind: str
    value: str
    day: int
    """When it was last met, in days."""


class SecretVault:
    """What other processes add is seen; a line that cannot be read is as if it were not there."""

    def __init__(self, folder: Path, days: int) -> None:
        self._folder, self._days = folder, days
        self._file = folder / "values"
        self._entries: dict[str, VaultEntry] = {}
        self._read = 0
        self._inode = 0
        self._key = b""
        self._mutex = threading.RLock()

    @property
    def key(self) -> bytes:
        """This home's own key, made when it is first needed."""
        if not self._key:
            self._key = load_home_key(self._folder)
        return self._key

    @property
    def entries(self) -> Iterable[VaultEntry]:
        """All that is known, the oldest first."""
        with self._mutex:
            self._read_new_lines()
            return tuple(self._entries.values())

    def get(self, tag: str) -> VaultEntry | None:
        with self._mutex:
            if tag not in self._entries:
                self._read_new_lines()
            return self._entries.get(tag)

    def put_value(self, kind: str, value: str) -> VaultEntry:
        """The entry of a value: the one there is, or a new one, which is on the disk when this returns."""
        with self._mutex:
            return self._store_value(kind, value)

    def _store_value(self, kind: str, value: str) -> VaultEntry:
        known = None
        for size in (5, 10, 20):
            tag = hashlib.blake2b(value.encode("utf-8", "replace"), key=self.key, digest_size=size).hexdigest()
            known = self.get(tag)
            if known is None or known.value == value:
                break
        else:
            raise AssertionError("unreachable: no two values share so long a tag")
        if known and known.day >= _today() - 1:
            return known
        entry = VaultEntry(tag, known.kind if known else kind, value, _today())
        self._entries[tag] = entry
        with suppress(OSError):
            # Where nothing can be written, the log cannot be either, and says so.
            self._append_entry(entry)
        return entry

    def forget_value(self, value: str) -> int:
        """Forgets every value that holds this one, for good; returns how many did."""
        with self._mutex:
            self._read_new_lines()
            held = [tag for tag, entry in self._entries.items() if value in entry.value]
            for tag in held:
                del self._entries[tag]
            if held:
                with self._exclusive_lock():
                    self._rewrite_file()
            return len(held)

    def _append_entry(self, entry: VaultEntry) -> None:
        with self._exclusive_lock():
            fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                # Begun on a line of its own, whatever a power cut left of the last one.
                os.write(fd, b"\n" + self.encrypt_entry(entry) + b"\n")
                os.fdatasync(fd)
            finally:
                os.close(fd)
            self._compact_file()

    def encrypt_entry(self, entry: VaultEntry) -> bytes:
        """An entry as one line of the file."""
        nonce, plain = os.urandom(NONCE), msgspec.json.encode(entry)
        text = apply_keystream(plain, derive_key(self.key, b"vault" + nonce))
        return base64.b64encode(nonce + self._compute_mac(nonce + text) + text)

    def _compute_mac(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self.key, digest_size=MAC).digest()

    def _decrypt_line(self, line: bytes) -> VaultEntry | None:
        try:
            raw = base64.b64decode(line, validate=True)
            nonce, mac, text = raw[:NONCE], raw[NONCE : NONCE + MAC], raw[NONCE + MAC :]
            if hmac.compare_digest(mac, self._compute_mac(nonce + text)):
                return msgspec.json.decode(
                    apply_keystream(text, derive_key(self.key, b"vault" + nonce)), type=VaultEntry
                )
        except (ValueError, msgspec.DecodeError):
            pass
        return None

    def _read_new_lines(self) -> None:
        """Reads what came since the last look."""
        try:
            with self._file.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._read = inode, 0
                file.seek(self._read)
                data = file.read()
        except OSError:
            return
        whole = data.rfind(b"\n") + 1
        self._read += whole
        for line in data[:whole].split(b"\n"):
            entry = self._decrypt_line(line) if line else None
            if entry and entry.day >= _today() - self._days:
                self._entries[entry.tag] = entry

    def _compact_file(self) -> None:
        """Writes the file anew when it has become long, without what was forgotten and said again."""
        if self._file.stat().st_size < 200 * (len(self._entries) + 1000):
            return
        self._read_new_lines()
        self._rewrite_file()

    def _rewrite_file(self) -> None:
        draft = self._folder / "values.new"
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.writelines(b"\n" + self.encrypt_entry(entry) + b"\n" for entry in self._entries.values())
            file.flush()
            os.fdatasync(fd)
        draft.replace(self._file)

    @contextmanager
    def _exclusive_lock(self) -> Generator[None]:
        fd = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def load_home_key(folder: Path) -> bytes:
    """The key in `folder`, made if there is none; of two that make one at the same time, both get the same."""
    path = folder / "key"
    for _ in range(2):
        with suppress(FileNotFoundError):
            if len(key := path.read_bytes()) == KEY_BYTES:
                return key
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f"key.{os.urandom(4).hex()}"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.write(fd, os.urandom(KEY_BYTES))
        os.fdatasync(fd)
        os.close(fd)
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink(missing_ok=True)
    return path.read_bytes()


def _today() -> int:
    return int(time.time()) // DAY
