"""What was typed in the chat, to be called up again with the arrow keys: with placeholders, its owner's alone."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sylph.core.errors import UserError
from sylph.engine.redact.redactor import NoRedaction

MODE = 0o600


class InputHistory:
    """One file of entries: a line with the time, then each line of the text behind a plus."""

    def __init__(self, file: Path, redactor: NoRedaction) -> None:
        self._file, self._redactor = file, redactor
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if file.is_dir():
            raise UserError(
                f"{file} is a folder: the chat keeps there what is typed, in a file of that name.",
                kind="io",
                next=[f"mv {file} {file}.old"],
            )
        file.touch(mode=MODE)
        file.chmod(MODE)

    def append(self, text: str) -> None:
        rows = "".join(f"+{row}\n" for row in self._redactor.redact_text(text).split("\n"))
        entry = f"\n# {datetime.now()}\n{rows}"
        with self._exclusive_lock():
            fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)
            with os.fdopen(fd, "ab") as file:
                file.write(entry.encode("utf-8", "replace"))

    def load_entries(self) -> list[str]:
        """All entries, the oldest first. Secrets that still lie there from before are taken out."""
        self._redact_file()
        found: list[list[str]] = [[]]
        for row in self._file.read_bytes().decode("utf-8", "replace").split("\n"):
            if row.startswith("+"):
                found[-1].append(row[1:])
            elif found[-1]:
                found.append([])
        return ["\n".join(rows) for rows in found if rows]

    def _redact_file(self) -> None:
        with self._exclusive_lock():
            old = self._file.read_bytes().decode("utf-8", "replace")
            new = self._redactor.redact_text(old)
            if new == old:
                return
            draft = self._file.with_name(f"{self._file.name}.new")
            draft.unlink(missing_ok=True)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
            with os.fdopen(fd, "wb") as file:
                file.write(new.encode("utf-8", "replace"))
                file.flush()
                os.fdatasync(fd)
            draft.replace(self._file)

    @contextmanager
    def _exclusive_lock(self) -> Generator[None]:
        """Two chats may write at the same time. The folder is locked, for the file may become another."""
        fd = os.open(self._file.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
