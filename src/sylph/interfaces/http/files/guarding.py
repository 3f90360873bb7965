"""What is protected stays so under another name."""

import os
from pathlib import Path
from stat import S_ISDIR

from sylph.core.errors import UserError
from sylph.interfaces.http.files import carry, names
from sylph.interfaces.http.files.spot import Ground, Spot


def stays_guarded(where: Ground, source: Spot, target: Path, *, moves: bool, home: Path | None = None) -> None:
    """Raises where something that is protected would lose that by its new name, or Sylph would lose its home.

    `home` is the path by which what is taken out of the trash was protected.
    """
    own = (*where.places.sylph, *where.places.source)
    if moves and any(each.is_relative_to(source.path) for each in own):
        raise UserError(f"{source.shown} holds Sylph itself.", kind="protected_path", next=["use another folder"])
    was = home or source.path
    if _bared(where, was, target):
        raise UserError(f"{source.shown} is protected.", kind="protected_path", next=["use another file"])
    if was == target or not S_ISDIR(source.there().st_mode):
        return
    fd = source.folder()
    try:
        for number, each in enumerate(carry.walk(fd)):
            if number > carry.ENTRIES:
                raise UserError(f"{source.shown} is too large.", kind="too_large", next=["take a part of it"])
            if _bared(where, was / each.path, target / each.path):
                raise UserError(
                    f"{names.shown(each.path)} in {source.shown} is protected, and would not be under its new name.",
                    kind="protected_path",
                    next=["move the rest of the folder without it"],
                )
    finally:
        os.close(fd)


def _bared(where: Ground, was: Path, now: Path) -> bool:
    return bool(where.protects(was, writing=False)) and not where.protects(now, writing=False)
