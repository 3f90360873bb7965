"""The folders the server knows: its own, those of sessions, and those an admin added."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.compose.engine import build_path_policy
from sylph.core.errors import NotFound, UserError
from sylph.core.permission.path_policy import real_path
from sylph.core.permission.protected_path import find_protection
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot, workspace_id
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.state.server_state import ServerState
from sylph.tools.files import atomic_write
from sylph.tools.files.workspace_paths import printable_name

routes = RouteGroup("workspaces")
WORKSPACES_FILE = "workspaces.json"
MAX_WORKSPACES = 1000
WorkspaceOrigin = Literal["server", "added", "session"]


class WorkspaceBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096, description="A folder of the server's machine, absolute.")]


class WorkspaceView(Struct, frozen=True, kw_only=True):
    """`id` stays the same for a folder, on every start of the server."""

    id: str
    path: str
    name: str
    origin: WorkspaceOrigin
    there: bool
    """Whether the folder is there now."""
    git: bool
    """Whether it is the top of a git repository."""


EXAMPLE = WorkspaceView(
    id="5f1d3c0a9be24d77", path="/home/ann/project", name="project", origin="server", there=True, git=True
)


@routes.get("/workspaces", scope="read", gives=ListPage[WorkspaceView], answer=ListPage(items=[EXAMPLE]))
async def list_workspaces(server: ServerState) -> ListPage[WorkspaceView]:
    """List the folders whose files the server shows."""
    found = await known_workspaces(server)
    return ListPage(
        items=[await asyncio.to_thread(describe_workspace, root, origin) for root, origin in found.values()]
    )


@routes.post(
    "/workspaces",
    scope="admin",
    gives=WorkspaceView,
    status=201,
    errors=(404, 409),
    example=WorkspaceBody(path="/home/ann/project"),
    answer=EXAMPLE,
)
async def add_workspace(server: ServerState, body: WorkspaceBody) -> WorkspaceView:
    """Add a folder. One that is known already stays as it is."""
    return await asyncio.to_thread(_add_folder, server, body.path)


@routes.get("/workspaces/{workspace}", scope="read", gives=WorkspaceView, errors=(404,), answer=EXAMPLE)
async def get_workspace(server: ServerState, workspace: str) -> WorkspaceView:
    """Get one by its id."""
    root, origin = await _lookup_workspace(server, workspace)
    return await asyncio.to_thread(describe_workspace, root, origin)


@routes.delete("/workspaces/{workspace}", scope="admin", errors=(404, 409), status=204)
async def remove_workspace(server: ServerState, workspace: str) -> None:
    """Forget a folder that was added. Its files stay where they are."""
    _, origin = await _lookup_workspace(server, workspace)
    if origin != "added":
        raise UserError(f"It is the {origin}'s own folder.", kind="wrong_state", next=["nothing: it was not added"])
    await asyncio.to_thread(_remove_folder, server, workspace)


async def find_workspace(server: ServerState, workspace: str) -> WorkspaceRoot:
    """Where the files of a workspace are. Raises NotFound."""
    root, _ = await _lookup_workspace(server, workspace)
    return WorkspaceRoot(root, build_path_policy(server.app.config))


def describe_workspace(root: Path, origin: WorkspaceOrigin) -> WorkspaceView:
    return WorkspaceView(
        id=workspace_id(root),
        path=printable_name(str(root)),
        name=printable_name(root.name or "/"),
        origin=origin,
        there=root.is_dir(),
        git=(root / ".git").exists(),
    )


async def _lookup_workspace(server: ServerState, workspace: str) -> tuple[Path, WorkspaceOrigin]:
    memory = server.workspace_cache
    if workspace not in memory.roots or time.monotonic() > memory.until:
        memory.roots = await known_workspaces(server)
        memory.until = time.monotonic() + memory.MAX_AGE
    if workspace not in memory.roots:
        raise NotFound(f"There is no workspace {workspace!r}.", next=["GET /api/v1/workspaces lists all"])
    return memory.roots[workspace]


async def known_workspaces(server: ServerState) -> "dict[str, tuple[Path, WorkspaceOrigin]]":
    sessions = {(one.workspace, bool(one.by)) for one in await server.app.runtime.list_sessions() if one.workspace}
    return await asyncio.to_thread(_gather_workspaces, server, sessions)


def _gather_workspaces(
    server: ServerState, sessions: set[tuple[str, bool]]
) -> "dict[str, tuple[Path, WorkspaceOrigin]]":
    found: dict[str, tuple[Path, WorkspaceOrigin]] = {}
    own: list[tuple[Path, WorkspaceOrigin]] = [(server.workspace, "server")]
    added: list[tuple[Path, WorkspaceOrigin]] = [(path, "added") for path in _read_added(server)]
    for path, origin in (*own, *added):
        root = real_path(path)
        if not is_forbidden(root, server):
            found.setdefault(workspace_id(root), (root, origin))
    # Those of the owner and of admins first: all others open nothing that is not open already.
    for text, weak in sorted(sessions, key=lambda each: (each[1], each[0])):
        root = Path(text)
        if (
            workspace_id(root) not in found
            and not is_forbidden(root, server)
            and _may_expose(root, server, found, weak=weak)
        ):
            found[workspace_id(root)] = (root, "session")
    return found


def _may_expose(
    root: Path, server: ServerState, found: "dict[str, tuple[Path, WorkspaceOrigin]]", *, weak: bool
) -> bool:
    """Whether a session that works there makes its folder known: not where a link has taken the folder's place."""
    if real_path(root) != root:
        return False
    inside = any(root.is_relative_to(known) for known, _ in found.values())
    # Who works in `/` or in their home means a part of it, and not to show all of it to every token.
    return inside or not (weak or build_path_policy(server.app.config).home.is_relative_to(root))


def is_forbidden(root: Path, server: ServerState) -> bool:
    """Whether the folder itself is nobody's business."""
    inside = ".git" in (part.casefold() for part in root.parts)
    return inside or find_protection(root, writing=False, places=build_path_policy(server.app.config)) is not None


def _add_folder(server: ServerState, given: str) -> WorkspaceView:
    if not given.startswith("/") or "\0" in given:
        raise UserError("The path is not absolute.", kind="bad_path", next=["give it from / on"])
    try:
        root = real_path(given)
        root.stat()
    except (OSError, ValueError) as error:
        raise UserError(f"{given} cannot be looked at: {error}.", kind="bad_path", next=["name a folder"]) from error
    if not root.is_dir():
        raise UserError(f"{given} is not a folder.", kind="not_a_directory", next=["name a folder"])
    if is_forbidden(root, server):
        raise UserError(f"{given} is protected.", kind="protected_path", next=["name another folder"])
    with server.workspace_cache.lock_for(WORKSPACES_FILE):
        added = list(_read_added(server))
        if root not in added and root != real_path(server.workspace):
            if len(added) >= MAX_WORKSPACES:
                raise UserError(
                    f"{MAX_WORKSPACES} folders are added already.", kind="conflict", next=["remove one of them"]
                )
            _write_added(server, [*added, root])
    server.workspace_cache.until = 0.0
    return describe_workspace(root, "server" if root == real_path(server.workspace) else "added")


def _remove_folder(server: ServerState, workspace: str) -> None:
    with server.workspace_cache.lock_for(WORKSPACES_FILE):
        _write_added(server, [path for path in _read_added(server) if workspace_id(path) != workspace])
    server.workspace_cache.until = 0.0


def _read_added(server: ServerState) -> Iterator[Path]:
    try:
        data = (server.app.config.data / WORKSPACES_FILE).read_bytes()
        yield from map(Path, msgspec.json.decode(data, type=list[str]))
    except (FileNotFoundError, msgspec.DecodeError):
        return


def _write_added(server: ServerState, paths: list[Path]) -> None:
    file = server.app.config.data / WORKSPACES_FILE
    atomic_write.replace_file(
        file, msgspec.json.encode([str(path) for path in paths]), was=atomic_write.stat_or_none(file), by="workspaces"
    )
