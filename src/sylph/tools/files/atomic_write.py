"""Replacing a file whole: readers see the old content or the new, never a mixture."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE

from sylph.core.errors import ToolError


def replace_file(path: Path, data: bytes, *, was: os.stat_result | None, by: str) -> None:
    """Puts `data` at `path` by a rename, on the disk when this returns.

    `was` is the file as the caller saw it, None for a new one: its mode and owner are kept, and a file that
    changed since is not overwritten. `by` names who does this, so that what a crash leaves can be cleared away.
    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_path(path, by)
    try:
        _write_draft(draft, data, was)
        _check_unchanged(path, was)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def draft_path(path: Path, by: str) -> Path:
    """Where new content is written before it takes the place of the old."""
    return path.with_name(f".sylph-{hashlib.blake2b(by.encode(), digest_size=8).hexdigest()}.tmp")


def stat_or_none(path: Path) -> os.stat_result | None:
    """The file now; None where there is none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _write_draft(draft: Path, data: bytes, was: os.stat_result | None) -> None:
    # Made with the mode a plain open would give, so that the user's umask holds.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if was:
            copy_owner_mode(descriptor, was)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def copy_owner_mode(descriptor: int, was: os.stat_result) -> None:
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid):
        with suppress(PermissionError):  # only root can give a file away
            os.fchown(descriptor, was.st_uid, was.st_gid)
    os.fchmod(descriptor, S_IMODE(was.st_mode))


def _check_unchanged(path: Path, was: os.stat_result | None) -> None:
    now = stat_or_none(path)
    if _file_stamp(now) != _file_stamp(was):
        raise ToolError(
            f"{path.name} was changed by somebody else in this moment.",
            kind="changed_meanwhile",
            next=["Read it again, then repeat the change."],
        )


def _file_stamp(found: os.stat_result | None) -> tuple[int, int, int] | None:
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else None


def fsync_folder(folder: Path) -> None:
    """The rename itself reaches the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
