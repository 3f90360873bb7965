"""Which folder somebody may name: one that is open already, or any for an admin."""

from pathlib import Path

from sylph.compose.engine import build_path_policy
from sylph.core.errors import UserError
from sylph.core.permission.path_policy import real_path
from sylph.interfaces.http.files.workspaces import is_forbidden, known_workspaces
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.state.server_state import ServerState

# What the routes say that take one.
FOREIGN_FOLDER = "`admin` for a folder that is no workspace yet"


async def resolve_workspace(server: ServerState, principal: Principal, text: str) -> Path:
    """The folder that somebody names. Raises where they may not, before telling whether it is there."""
    if not text.startswith("/") or "\0" in text:
        raise _missing_folder_error(text)
    root = _resolve_path(text)
    if root != real_path(server.workspace):
        await _check_access(server, principal, root)
    if not _is_folder(root):
        raise _missing_folder_error(text)
    return root


async def _check_access(server: ServerState, principal: Principal, root: Path) -> None:
    if is_forbidden(root, server):
        raise AccessDenied(f"{root} is protected.", kind="protected_path", next=["name another folder"])
    if principal.has_scope("admin"):
        return
    source = build_path_policy(server.app.config).source
    opened = [folder for folder, _ in (await known_workspaces(server)).values()]
    if any(map(root.is_relative_to, source)) or not any(map(root.is_relative_to, opened)):
        raise AccessDenied(
            f"{root} is in no workspace of this server.",
            details={"scope": "admin"},
            next=["name a folder that GET /api/v1/workspaces lists, or one inside", "an admin adds it there"],
        )


def _resolve_path(text: str) -> Path:
    try:
        return real_path(text)
    except (OSError, ValueError) as error:
        raise _missing_folder_error(text) from error


def _is_folder(root: Path) -> bool:
    try:
        return root.is_dir()
    except OSError:
        return False


def _missing_folder_error(text: str) -> UserError:
    return UserError(
        f"There is no folder {text!r} on the server's machine.",
        kind="no_workspace",
        next=["give the whole path of a folder that is there"],
    )
