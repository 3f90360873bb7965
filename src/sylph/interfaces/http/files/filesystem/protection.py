"""What is protected stays so under another name."""

import os
from pathlib import Path
from stat import S_ISDIR

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import copy_move, path_names
from sylph.interfaces.http.files.filesystem.location import FileLocation
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot


def check_protection(
    where: WorkspaceRoot, source: FileLocation, target: Path, *, moves: bool, home: Path | None = None
) -> None:
    """Raises where something that is protected would lose that by its new name, or Sylph would lose its home.

    `home` is the path by which what is taken out of the trash was protected.
    """
    own = (*where.path_policy.sylph, *where.path_policy.source)
    if moves and any(each.is_relative_to(source.path) for each in own):
        raise UserError(
            f"{source.display_path} holds Sylph itself.", kind="protected_path", next=["use another folder"]
        )
    was = home or source.path
    if _loses_protection(where, was, target):
        raise UserError(f"{source.display_path} is protected.", kind="protected_path", next=["use another file"])
    if was == target or not S_ISDIR(source.require_stat().st_mode):
        return
    fd = source.open_folder()
    try:
        for number, each in enumerate(copy_move.walk_folder(fd)):
            if number > copy_move.MAX_ENTRIES:
                raise UserError(f"{source.display_path} is too large.", kind="too_large", next=["take a part of it"])
            if _loses_protection(where, was / each.path, target / each.path):
                raise UserError(
                    f"{path_names.display_name(each.path)} in {source.display_path} "
                    f"is protected, and would not be under its new name.",
                    kind="protected_path",
                    next=["move the rest of the folder without it"],
                )
    finally:
        os.close(fd)


def _loses_protection(where: WorkspaceRoot, was: Path, now: Path) -> bool:
    return bool(where.protection_reason(was, writing=False)) and not where.protection_reason(now, writing=False)
