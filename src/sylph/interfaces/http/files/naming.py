"""Which folder somebody may name: one that is open already, or any for an admin."""

from pathlib import Path

from sylph.core.errors import UserError
from sylph.core.places import real
from sylph.interfaces.http.files.workspaces import known, refused
from sylph.interfaces.http.house import House
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.who import Who
from sylph.wiring import places_of

# What the routes say that take one.
FOREIGN = "`admin` for a folder that is no workspace yet"


async def named(house: House, who: Who, text: str) -> Path:
    """The folder that somebody names. Raises where they may not, before telling whether it is there."""
    if not text.startswith("/") or "\0" in text:
        raise _missing(text)
    root = _real(text)
    if root != real(house.workspace):
        await _check(house, who, root)
    if not _there(root):
        raise _missing(text)
    return root


async def _check(house: House, who: Who, root: Path) -> None:
    if refused(root, house):
        raise Denied(f"{root} is protected.", kind="protected_path", next=["name another folder"])
    if who.may("admin"):
        return
    source = places_of(house.app.config).source
    opened = [folder for folder, _ in (await known(house)).values()]
    if any(map(root.is_relative_to, source)) or not any(map(root.is_relative_to, opened)):
        raise Denied(
            f"{root} is in no workspace of this server.",
            details={"scope": "admin"},
            next=["name a folder that GET /api/v1/workspaces lists, or one inside", "an admin adds it there"],
        )


def _real(text: str) -> Path:
    try:
        return real(text)
    except (OSError, ValueError) as error:
        raise _missing(text) from error


def _there(root: Path) -> bool:
    try:
        return root.is_dir()
    except OSError:
        return False


def _missing(text: str) -> UserError:
    return UserError(
        f"There is no folder {text!r} on the server's machine.",
        kind="no_workspace",
        next=["give the whole path of a folder that is there"],
    )
