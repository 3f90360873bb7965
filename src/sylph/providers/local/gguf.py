"""Model files in GGUF: enough of them to tell what a file is, and whether all of it is there."""

import mmap
import re
import struct
from pathlib import Path
from typing import Any

from msgspec import Struct

from sylph.core.errors import UserError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST = 1_000_000
STRING, ARRAY = 8, 9
# Plain values by their number in the format.
PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# How many values of a tensor are kept together, and in how many bytes, for the kinds that are in use.
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
}  # fmt: skip
# Files that are no model to talk with: encoders for embeddings, and the eyes and ears of other models.
SILENT = ("bert", "clip", "t5encoder", "mmproj", "wavtokenizer")
TEMPLATE = "tokenizer.chat_template"
SPLIT = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf$")
Value = int | float | bool | str | None


class Card(Struct, frozen=True, kw_only=True):
    """What a model file says of itself."""

    size: int
    architecture: str
    title: str = ""
    window: int | None = None
    template: bool = False
    """Whether it says how a conversation is put to it."""
    tools: bool = False
    """Whether there is a place for tools in that."""


class _Short(Exception):
    """The file ends where something should still come."""


def card(path: Path) -> Card:
    """Reads the head of a file, and checks that its end is there. Raises UserError where it is of no use."""
    first, *rest = _pieces(path)
    read = _read(first)
    size = sum((read.size, *(_read(piece).size for piece in rest)))
    if any(read.architecture.endswith(kind) or read.architecture.startswith(kind) for kind in SILENT):
        raise _unusable(path, f"it is no model to talk with ({read.architecture})")
    return Card(
        size=size,
        architecture=read.architecture,
        title=read.title,
        window=read.window,
        template=read.template,
        tools=read.tools,
    )


def _pieces(path: Path) -> list[Path]:
    """All files of a model that comes in several: `NAME-00001-of-00003.gguf`."""
    split = SPLIT.match(path.name)
    if not split:
        return [path]
    stem, at, count = split[1], int(split[2]), int(split[3])
    if at != 1:
        raise _unusable(path, "it is not the first of its parts", f"give {stem}-00001-of-{split[3]}.gguf")
    pieces = [path.with_name(f"{stem}-{number:05}-of-{count:05}.gguf") for number in range(1, min(count, 1000) + 1)]
    missing = [piece.name for piece in pieces if not piece.exists()]
    if missing:
        raise _unusable(path, f"a part of it is missing: {missing[0]}", "put all of its parts into one folder")
    return pieces


def _read(path: Path) -> Card:
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise _unusable(path, "it is not a GGUF file", "convert it, or look for the same model as GGUF")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data).card()
    except FileNotFoundError:
        raise _unusable(path, "there is no such file") from None
    except IsADirectoryError:
        raise _unusable(path, "it is a folder", "give the .gguf file in it") from None
    except OSError as error:
        raise _unusable(path, f"it cannot be read ({error.strerror})", f"check the owner and mode of {path}") from error
    except (_Short, struct.error):
        raise _unusable(path, "it is not complete: its end is missing", "download it again") from None
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        raise _unusable(path, f"its head makes no sense ({error})", "download it again") from None


def _unusable(path: Path, why: str, *next: str) -> UserError:
    return UserError(f"{path} cannot be used: {why}.", kind="bad_model", details={"path": path}, next=next)


class _Reader:
    """Walks over the head of a file, never beyond its end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at, self._end = data, 4, len(data)

    def card(self) -> Card:
        version = self._number("I")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        tensors, values = self._count(), self._count()
        known: dict[str, Value] = {}
        for _ in range(values):
            key = self._text()
            known[key] = self._value(self._number("I"))
        self._tensors(tensors, int(known.get("general.alignment") or 32))
        architecture = str(known.get("general.architecture") or "unknown")
        window = known.get(f"{architecture}.context_length")
        template = str(known.get(TEMPLATE) or "")
        return Card(
            size=self._end,
            architecture=architecture,
            title=str(known.get("general.name") or ""),
            window=window if isinstance(window, int) and window > 0 else None,
            template=bool(template),
            tools="tools" in template,
        )

    def _tensors(self, count: int, alignment: int) -> None:
        """Raises where the last byte of a tensor is beyond the end."""
        needed = 0
        for _ in range(count):
            self._text()
            sizes = [self._number("Q") for _ in range(self._few(self._number("I")))]
            kind, offset = self._number("I"), self._number("Q")
            values = 1
            for size in sizes:
                values *= size
            together, bytes = BLOCKS.get(kind, (values or 1, 1))
            needed = max(needed, offset + values // together * bytes)
        begin = -(-self._at // max(alignment, 1)) * max(alignment, 1)
        if begin + needed > self._end:
            raise _Short

    def _value(self, kind: int) -> Value:
        if kind == STRING:
            return self._text()
        if kind != ARRAY:
            return self._number(_plain(kind))
        inner, length = self._number("I"), self._count(100 * MOST)
        if inner == STRING:
            for _ in range(self._count_checked(length)):
                self._skip(self._number("Q"))
        elif inner == ARRAY:
            raise ValueError("nested lists")
        else:
            self._skip(length * struct.calcsize(_plain(inner)))
        return None

    def _number(self, kind: str) -> Any:
        size = struct.calcsize(f"<{kind}")
        at = self._skip(size)
        return struct.unpack_from(f"<{kind}", self._data, at)[0]

    def _text(self) -> str:
        length = self._number("Q")
        at = self._skip(length)
        return self._data[at : at + length].decode(errors="replace")

    def _skip(self, length: int) -> int:
        at, self._at = self._at, self._at + length
        if self._at > self._end:
            raise _Short
        return at

    def _count(self, most: int = MOST) -> int:
        return self._count_checked(self._number("Q"), most)

    def _count_checked(self, count: int, most: int = MOST) -> int:
        if count > most:
            raise ValueError(f"{count} entries")
        return count

    def _few(self, count: int) -> int:
        return self._count_checked(count, 8)


def _plain(kind: int) -> str:
    if kind not in PLAIN:
        raise ValueError(f"kind of value {kind}")
    return PLAIN[kind]
