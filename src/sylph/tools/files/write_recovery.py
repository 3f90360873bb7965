"""Knowing by its content whether a file was changed before a crash."""

import hashlib
import os
from pathlib import Path

from sylph.core.errors import OutcomeUnknown
from sylph.core.tool import ToolContext, ToolResult
from sylph.tools.files import atomic_write
from sylph.tools.files.workspace_paths import resolve_writable

ABSENT = "absent"


def expected_write(root: Path, path: Path, after: bytes) -> dict[str, str]:
    """The file as it is and as it will be."""
    return {
        "path": path.relative_to(os.path.realpath(root)).as_posix(),
        "before": hash_file(path),
        "after": hash_bytes(after),
    }


def recover_write(context: ToolContext) -> ToolResult | None:
    """The change was made, or it was not made, or something else is there now and nobody can tell."""
    name = context.foreseen.get("path", "")
    path = resolve_writable(context.workspace, name) if name else None
    now = hash_file(path) if path else ""
    if path:
        atomic_write.draft_path(path, context.idempotency_key).unlink(missing_ok=True)
    if name and now == context.foreseen["after"]:
        return ToolResult(text=f"{name}: the change was made before Sylph was interrupted; the content is as intended.")
    if name and now == context.foreseen["before"]:
        return None
    raise OutcomeUnknown(
        f"Sylph was stopped while it changed {name or 'a file'}, which is now neither as it was nor as it was to be.",
        details={"now": now, **context.foreseen},
        next=["Read the file and decide what is left to do."],
    )


def hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ABSENT


def hash_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
