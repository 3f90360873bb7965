"""Knowing by its content whether a file was changed before a crash."""

import hashlib
import os
from pathlib import Path

from sylph.core.errors import Unknown
from sylph.core.tool import Context, Result
from sylph.tools import atomic
from sylph.tools.workspace import changeable

ABSENT = "absent"


def foresee(root: Path, path: Path, after: bytes) -> dict[str, str]:
    """The file as it is and as it will be."""
    return {
        "path": path.relative_to(os.path.realpath(root)).as_posix(),
        "before": fingerprint(path),
        "after": digest(after),
    }


def recover(context: Context) -> Result | None:
    """The change was made, or it was not made, or something else is there now and nobody can tell."""
    name = context.foreseen.get("path", "")
    path = changeable(context.workspace, name) if name else None
    now = fingerprint(path) if path else ""
    if path:
        atomic.draft_of(path, context.key).unlink(missing_ok=True)
    if name and now == context.foreseen["after"]:
        return Result(text=f"{name}: the change was made before Sylph was interrupted; the content is as intended.")
    if name and now == context.foreseen["before"]:
        return None
    raise Unknown(
        f"Sylph was stopped while it changed {name or 'a file'}, which is now neither as it was nor as it was to be.",
        details={"now": now, **context.foreseen},
        next=["Read the file and decide what is left to do."],
    )


def fingerprint(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ABSENT


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
