"""What happened to files, as facts: found after a call, put back by an undo. Contents are kept elsewhere, by digest."""

import os
from typing import ClassVar, Literal

import msgspec

from sylph.core.events import Fact

FileKind = Literal["file", "link", "folder", "other"]
# A name that is no text stands as NUL and its bytes in hex: no name can hold a NUL.
RAW_NAME_MARK = "\0"


class FileState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What there is at a path. A file too large to be kept has no `digest`, and is known by size and `mtime` (ns)."""

    kind: FileKind
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    mtime: int = 0


class FileChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A path in the workspace, what was there, and what is there now; None for nothing."""

    path: str
    before: FileState | None = None
    after: FileState | None = None


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A path that an undo did not touch, and why."""

    path: str
    why: str


class FilesChanged(Fact, frozen=True, kw_only=True):
    """What a call changed in the workspace. `gaps` tells what it changed, or may have, that cannot be undone.

    With a `doubt` it is not sure that the call did it: Sylph was stopped meanwhile, and somebody else may have.
    """

    wire: ClassVar[str] = "files.changed"
    call: str
    changes: tuple[FileChange, ...] = ()
    gaps: tuple[str, ...] = ()
    doubt: str = ""


class UndoStarted(Fact, frozen=True, kw_only=True):
    """Files are put back from here on. Each step goes from what is there now (`before`) to what was there (`after`).

    `calls` are those whose changes are undone, the first of them in `turn`; `redo` names the undo that is taken back.
    """

    wire: ClassVar[str] = "undo.started"
    durable: ClassVar[bool] = True
    id: str
    turn: str = ""
    calls: tuple[str, ...] = ()
    steps: tuple[FileChange, ...] = ()
    left: tuple[SkippedFile, ...] = ()
    redo: str = ""


class FilesRestored(Fact, frozen=True, kw_only=True):
    """An undo is done: these paths are as they were, `left` are not. `resumed` if another process began it."""

    wire: ClassVar[str] = "files.restored"
    durable: ClassVar[bool] = True
    undo: str
    restored: tuple[str, ...] = ()
    left: tuple[SkippedFile, ...] = ()
    resumed: bool = False


FILE_FACTS: tuple[type[Fact], ...] = (FilesChanged, UndoStarted, FilesRestored)


def encode_path(path: bytes) -> str:
    """A path as facts hold it: text, or what stands for bytes that are none."""
    try:
        return path.decode()
    except UnicodeDecodeError:
        return RAW_NAME_MARK + path.hex()


def decode_path(name: str) -> bytes:
    return bytes.fromhex(name[1:]) if name.startswith(RAW_NAME_MARK) else os.fsencode(name)


def display_path(name: str) -> str:
    """A path as a person reads it, on one line."""
    text = decode_path(name).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
