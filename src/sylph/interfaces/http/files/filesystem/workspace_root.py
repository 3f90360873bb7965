"""A workspace by its folder: its id, and what in it is protected."""

import hashlib
import os
from pathlib import Path

from msgspec import Struct

from sylph.core.permission.path_policy import PathPolicy
from sylph.core.permission.protected_path import find_protection
from sylph.interfaces.http.files.filesystem import path_names


class WorkspaceRoot(Struct, frozen=True):
    """A workspace, and what is protected on this machine."""

    root: Path
    """With its links followed."""
    path_policy: PathPolicy

    def protection_reason(self, path: Path, *, writing: bool) -> str:
        """Why nobody gets at this over HTTP; empty where everybody does who may."""
        inner = path.relative_to(self.root).parts if path.is_relative_to(self.root) else path.parts
        if any(part.casefold() == ".git" for part in inner):
            return "belongs to git itself"
        guard = find_protection(path, writing=writing, places=self.path_policy)
        return f"is protected ({guard.kind}): this {guard.why}" if guard else ""

    def display_path(self, path: Path) -> str:
        return (
            path_names.display_name(str(path.relative_to(self.root))) if path != self.root else "the workspace itself"
        )

    def encode_path(self, path: Path) -> str:
        return path_names.encode_path(str(path.relative_to(self.root))) if path != self.root else ""


def workspace_id(root: Path) -> str:
    return hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
