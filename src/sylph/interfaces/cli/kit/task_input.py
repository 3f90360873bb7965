"""The task: from the command line's words, and from what comes on stdin."""

import os
import select
import stat
import sys
from collections.abc import Sequence

from sylph.core.errors import UserError

MAX_INPUT_BYTES = 1_000_000
WAIT_SECONDS = 1.0


def read_task(words: Sequence[str]) -> str:
    """The whole task; empty where there is none. Raises UserError for input that no model could read."""
    text = " ".join(words).strip().encode("utf-8", "replace").decode()
    told = read_stdin() if has_piped_input() else ""
    if text and told:
        return f"{text}\n\n<stdin>\n{told}\n</stdin>"
    return text or told


def has_piped_input() -> bool:
    """Whether somebody sends us something: a pipe or a file. A terminal or /dev/null does not."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def read_stdin() -> str:
    pieces: list[bytes] = []
    while sum(map(len, pieces)) <= MAX_INPUT_BYTES:
        _explain_waiting(first=not pieces)
        piece = os.read(0, 65_536)
        if not piece:
            return decode_input(b"".join(pieces))
        pieces.append(piece)
    raise UserError(
        f"There is more on stdin than a task can hold: {MAX_INPUT_BYTES // 1_000_000} MB of text at the most.",
        next=["Put it into a file and name that file in the task: Sylph reads what it needs of it."],
    )


def _explain_waiting(*, first: bool) -> None:
    if first and not select.select([0], [], [], WAIT_SECONDS)[0] and sys.stderr.isatty():
        sys.stderr.write("sylph: waiting for stdin (end it with Ctrl-D, or start with `< /dev/null`)\n")


def decode_input(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _not_text_error() from error
    if "\0" in text:
        raise _not_text_error()
    return text.strip()


def _not_text_error() -> UserError:
    return UserError(
        "What came on stdin is not text.", next=["Convert it to UTF-8 text, or name the file in the task."]
    )
