"""A text file as it is on the disk: its marks, its line ends, its odd bytes."""

import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from sylph.core.errors import ToolError

BOM = b"\xef\xbb\xbf"
SAMPLE = 65_536
LARGEST = 32_000_000


def stat_file(path: Path, name: str) -> os.stat_result:
    """The file at `path`; what is not a plain file is refused. Raises OSError."""
    found = path.stat()
    if S_ISDIR(found.st_mode):
        raise ToolError(f"{name} is a directory.", kind="is_directory", next=[f"list(path={name!r})"])
    if not S_ISREG(found.st_mode):
        raise ToolError(f"{name} is not a plain file.", kind="not_a_file", next=["Use shell for devices and pipes."])
    return found


def load_text(path: Path, name: str) -> str:
    """The whole text, nothing normalised; bytes that are no UTF-8 come back from `encode` as they were."""
    if stat_file(path, name).st_size > LARGEST:
        raise ToolError(
            f"{name} is over {LARGEST:,} bytes.", kind="too_large", next=["Change it with a shell command."]
        )
    data = path.read_bytes()
    refuse_binary(data[:SAMPLE], name)
    return data.decode("utf-8", "surrogateescape")


def encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def displayable_text(text: str) -> str:
    """`text` from `load` as something that can be shown."""
    return encode_text(text).decode("utf-8", "replace")


def read_sample(path: Path) -> bytes:
    """The first bytes of a file: enough to tell how it is written. Raises OSError."""
    with path.open("rb") as file:
        return file.read(SAMPLE)


def is_binary(head: bytes) -> bool:
    return b"\0" in head


def refuse_binary(head: bytes, name: str) -> None:
    if is_binary(head):
        raise ToolError(f"{name} is a binary file.", kind="binary_file", next=["Use shell: file, xxd, strings."])


def refuse_write_protected(path: Path, name: str) -> None:
    """A rename would get past a file's own write protection; the user meant it."""
    if not os.access(path, os.W_OK):
        raise ToolError(f"{name} is write-protected.", kind="permission_denied")


def has_crlf(head: bytes) -> bool:
    """Whether every line ends in CRLF."""
    return b"\r\n" in head and head.count(b"\n") == head.count(b"\r\n")


def to_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def encode_like(text: str, head: bytes) -> bytes:
    """`text` in bytes, with the mark and the line ends of the file that begins with `head`."""
    if is_binary(head):
        return encode_text(text)
    data = encode_text(to_crlf(text) if has_crlf(head) and "\r" not in text else text)
    return data if not head.startswith(BOM) or data.startswith(BOM) else BOM + data
