"""Some lines of a file of any size, read in pieces."""

import codecs
from typing import BinaryIO

from msgspec import Struct

PIECE = 1_000_000
# A little under what the executor shows, so that what is cut is cut here, where it can say how to go on.
BYTES = 48_000
LINES = 2_000
# Counting lines further than this is not worth the wait.
COUNTED = 256_000_000


class LineRange(Struct, frozen=True, kw_only=True):
    """Lines `first` to `last` of `total`; `total` is None where the file is too long to count."""

    text: str
    first: int
    last: int
    total: int | None
    cut: bool = False

    @property
    def is_whole(self) -> bool:
        return self.first == 1 and self.last == self.total and not self.cut


def read_range(file: BinaryIO, *, offset: int, limit: int) -> LineRange:
    """Lines from `offset` on (the first is 1): at most `limit`, and no more than fits an answer."""
    passed = _skip_lines(file, offset - 1)
    data, taken, cut = _take_lines(file, limit)
    decoder = codecs.getincrementaldecoder("utf-8-sig" if offset == 1 else "utf-8")("replace")
    text = decoder.decode(data, final=not cut).replace("\r\n", "\n")
    last = passed + taken
    more = _count_lines(file)
    total = None if more is None else last + more - cut
    return LineRange(text=text, first=offset, last=last, total=total, cut=cut)


def range_header(found: LineRange) -> str:
    """Which lines these are, and how to see the next; empty when they are all."""
    if found.is_whole:
        return ""
    of = "" if found.total is None else f" of {found.total:,}"
    said = f"lines {found.first}-{found.last}{of}"
    if found.cut:
        said += f"; line {found.last} is too long and cut"
    if found.last != found.total:
        said += f"; go on with offset={found.last + 1}"
    return f"[{said}]\n"


def _skip_lines(file: BinaryIO, wanted: int) -> int:
    """Moves past `wanted` lines; how many there were, should the file end first."""
    passed, open_line = 0, False
    while passed < wanted and (data := file.read(PIECE)):
        found = data.count(b"\n")
        if passed + found < wanted:
            passed += found
            open_line = not data.endswith(b"\n")
            continue
        at = -1
        for _ in range(wanted - passed):
            at = data.index(b"\n", at + 1)
        file.seek(at + 1 - len(data), 1)
        return wanted
    return passed + open_line


def _take_lines(file: BinaryIO, limit: int) -> tuple[bytes, int, bool]:
    """The next lines: their bytes, how many, and whether the last one was cut."""
    taken: list[bytes] = []
    room = BYTES
    while len(taken) < limit and (line := file.readline(room + 1)):
        if len(line) > room:
            if not taken:
                file.seek(-1, 1)
                return line[:room], 1, True
            file.seek(-len(line), 1)
            break
        taken.append(line)
        room -= len(line)
    return b"".join(taken), len(taken), False


def _count_lines(file: BinaryIO) -> int | None:
    """The lines from here to the end; None where that is too far."""
    found, read, last = 0, 0, b"\n"
    while data := file.read(PIECE):
        found += data.count(b"\n")
        read += len(data)
        last = data[-1:]
        if read > COUNTED:
            return None
    return found + (last != b"\n")
