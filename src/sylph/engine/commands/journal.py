"""What is written down of one command. Needs the standard library alone."""

import json
import os

from sylph.disk.encryption import apply_keystream_at


class CommandJournal:
    """Two files: what became of the command, and what it put out."""

    def __init__(self, folder: str, key: str, head: int, tail: int, seal: str = "") -> None:
        self._path, self._seal = f"{folder}/{key}", bytes.fromhex(seal)
        self._run = self._out = -1
        self._room, self._size = head, tail
        self._tail = bytearray()
        self._total = self._head = 0

    def begin(self, **intent: object) -> bool:
        """The journal is there with its intent in it, or not at all; False if the order was taken back before."""
        draft = f"{self._path}.{os.getpid()}.new"
        self._run = open_append(draft)
        try:
            self.append_line(intent=intent)
            os.link(draft, f"{self._path}.run")
        except FileExistsError:
            os.close(self._run)
            return False
        finally:
            os.unlink(draft)
        self._out = open_append(f"{self._path}.out")
        return True

    def append_line(self, **what: object) -> None:
        os.write(self._run, json.dumps(what).encode() + b"\n")

    def append_output(self, data: bytes) -> None:
        self._total += len(data)
        fits = data[: self._room]
        if fits:
            self._write_output(fits, self._head)
            self._room -= len(fits)
            self._head += len(fits)
        if rest := data[len(fits) :]:
            self._tail += rest
            del self._tail[: -self._size]

    def _write_output(self, data: bytes, at: int) -> None:
        os.write(self._out, apply_keystream_at(data, self._seal, at) if self._seal else data)

    def end(self, **what: object) -> None:
        if self._tail:
            self._write_output(bytes(self._tail), self._head)
        self.append_line(ended={**what, "bytes": self._total, "head": self._head})
        os.close(self._run)
        os.close(self._out)


def open_append(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
