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
MAX_ENTRIES = 1_000_000
STRING, ARRAY = 8, 9
# Plain values by their number in the format.
PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# How many values of a tensor are kept together, and in how many bytes, for the kinds that are in use.
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
}  # fmt: skip
# Files that are no model to talk with: encoders for embeddings, and the eyes and ears of other models.
NOT_CHAT = ("bert", "clip", "t5encoder", "mmproj", "wavtokenizer")
TEMPLATE = "tokenizer.chat_template"
SPLIT = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf$")
GgufValue = int | float | bool | str | None


class GgufInfo(Struct, frozen=True, kw_only=True):
    """What a model file says of itself."""

    size: int
    architecture: str
    title: str = ""
    window: int | None = None
    template: bool = False
    """Whether it says how a conversation is put to it."""
    tools: bool = False
    """Whether there is a place for tools in that."""


class _TruncatedFile(Exception):
    """The file ends where something should still come."""


def read_info(path: Path) -> GgufInfo:
    """Reads the head of a file, and checks that its end is there. Raises UserError where it is of no use."""
    first, *rest = _find_shards(path)
    read = _read_file(first)
    size = sum((read.size, *(_read_file(piece).size for piece in rest)))
    if any(read.architecture.endswith(kind) or read.architecture.startswith(kind) for kind in NOT_CHAT):
        raise _unusable_error(path, f"it is no model to talk with ({read.architecture})")
    return GgufInfo(
        size=size,
        architecture=read.architecture,
        title=read.title,
        window=read.window,
        template=read.template,
        tools=read.tools,
    )


def _find_shards(path: Path) -> list[Path]:
    """All files of a model that comes in several: `NAME-00001-of-00003.gguf`."""
    split = SPLIT.match(path.name)
    if not split:
        return [path]
    stem, at, count = split[1], int(split[2]), int(split[3])
    if at != 1:
        raise _unusable_error(path, "it is not the first of its parts", f"give {stem}-00001-of-{split[3]}.gguf")
    pieces = [path.with_name(f"{stem}-{number:05}-of-{count:05}.gguf") for number in range(1, min(count, 1000) + 1)]
    missing = [piece.name for piece in pieces if not piece.exists()]
    if missing:
        raise _unusable_error(path, f"a part of it is missing: {missing[0]}", "put all of its parts into one folder")
    return pieces


def _read_file(path: Path) -> GgufInfo:
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise _unusable_error(path, "it is not a GGUF file", "convert it, or look for the same model as GGUF")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _HeaderReader(data).read_header()
    except FileNotFoundError:
        raise _unusable_error(path, "there is no such file") from None
    except IsADirectoryError:
        raise _unusable_error(path, "it is a folder", "give the .gguf file in it") from None
    except OSError as error:
        raise _unusable_error(
            path, f"it cannot be read ({error.strerror})", f"check the owner and mode of {path}"
        ) from error
    except (_TruncatedFile, struct.error):
        raise _unusable_error(path, "it is not complete: its end is missing", "download it again") from None
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        raise _unusable_error(path, f"its head makes no sense ({error})", "download it again") from None


def _unusable_error(path: Path, why: str, *next: str) -> UserError:
    return UserError(f"{path} cannot be used: {why}.", kind="bad_model", details={"path": path}, next=next)


class _HeaderReader:
    """Walks over the head of a file, never beyond its end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at, self._end = data, 4, len(data)

    def read_header(self) -> GgufInfo:
        version = self._read_number("I")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        tensors, values = self._read_count(), self._read_count()
        known: dict[str, GgufValue] = {}
        for _ in range(values):
            key = self._read_text()
            known[key] = self._read_value(self._read_number("I"))
        self._check_tensors(tensors, int(known.get("general.alignment") or 32))
        architecture = str(known.get("general.architecture") or "unknown")
        window = known.get(f"{architecture}.context_length")
        template = str(known.get(TEMPLATE) or "")
        return GgufInfo(
            size=self._end,
            architecture=architecture,
            title=str(known.get("general.name") or ""),
            window=window if isinstance(window, int) and window > 0 else None,
            template=bool(template),
            tools="tools" in template,
        )

    def _check_tensors(self, count: int, alignment: int) -> None:
        """Raises where the last byte of a tensor is beyond the end."""
        needed = 0
        for _ in range(count):
            self._read_text()
            sizes = [self._read_number("Q") for _ in range(self._check_dimensions(self._read_number("I")))]
            kind, offset = self._read_number("I"), self._read_number("Q")
            values = 1
            for size in sizes:
                values *= size
            together, bytes = BLOCKS.get(kind, (values or 1, 1))
            needed = max(needed, offset + values // together * bytes)
        begin = -(-self._at // max(alignment, 1)) * max(alignment, 1)
        if begin + needed > self._end:
            raise _TruncatedFile

    def _read_value(self, kind: int) -> GgufValue:
        if kind == STRING:
            return self._read_text()
        if kind != ARRAY:
            return self._read_number(_struct_format(kind))
        inner, length = self._read_number("I"), self._read_count(100 * MAX_ENTRIES)
        if inner == STRING:
            for _ in range(self._check_count(length)):
                self._skip_bytes(self._read_number("Q"))
        elif inner == ARRAY:
            raise ValueError("nested lists")
        else:
            self._skip_bytes(length * struct.calcsize(_struct_format(inner)))
        return None

    def _read_number(self, kind: str) -> Any:
        size = struct.calcsize(f"<{kind}")
        at = self._skip_bytes(size)
        return struct.unpack_from(f"<{kind}", self._data, at)[0]

    def _read_text(self) -> str:
        length = self._read_number("Q")
        at = self._skip_bytes(length)
        return self._data[at : at + length].decode(errors="replace")

    def _skip_bytes(self, length: int) -> int:
        at, self._at = self._at, self._at + length
        if self._at > self._end:
            raise _TruncatedFile
        return at

    def _read_count(self, most: int = MAX_ENTRIES) -> int:
        return self._check_count(self._read_number("Q"), most)

    def _check_count(self, count: int, most: int = MAX_ENTRIES) -> int:
        if count > most:
            raise ValueError(f"{count} entries")
        return count

    def _check_dimensions(self, count: int) -> int:
        return self._check_count(count, 8)


def _struct_format(kind: int) -> str:
    if kind not in PLAIN:
        raise ValueError(f"kind of value {kind}")
    return PLAIN[kind]
