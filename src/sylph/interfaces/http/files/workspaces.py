"""The folders the server knows: its own, those of sessions, and those an admin added."""

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.places import real
from sylph.core.protected import guarded
from sylph.interfaces.http.files.spot import Ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes
from sylph.tools import atomic
from sylph.tools.workspace import printable
from sylph.wiring import places_of

routes = Routes("workspaces")
FILE = "workspaces.json"
MOST = 1000
Origin = Literal["server", "added", "session"]


class WorkspaceBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096, description="A folder of the server's machine, absolute.")]


class WorkspaceView(Struct, frozen=True, kw_only=True):
    """`id` stays the same for a folder, on every start of the server."""

    id: str
    path: str
    name: str
    origin: Origin
    there: bool
    """Whether the folder is there now."""
    git: bool
    """Whether it is the top of a git repository."""


EXAMPLE = WorkspaceView(
    id="5f1d3c0a9be24d77", path="/home/ann/project", name="project", origin="server", there=True, git=True
)


@routes.get("/workspaces", scope="read", gives=Page[WorkspaceView], answer=Page(items=[EXAMPLE]))
async def list_(house: House) -> Page[WorkspaceView]:
    """List the folders whose files the server shows."""
    found = await known(house)
    return Page(items=[await asyncio.to_thread(view, root, origin) for root, origin in found.values()])


@routes.post(
    "/workspaces",
    scope="admin",
    gives=WorkspaceView,
    status=201,
    errors=(404, 409),
    example=WorkspaceBody(path="/home/ann/project"),
    answer=EXAMPLE,
)
async def add(house: House, body: WorkspaceBody) -> WorkspaceView:
    """Add a folder. One that is known already stays as it is."""
    return await asyncio.to_thread(_add, house, body.path)


@routes.get("/workspaces/{workspace}", scope="read", gives=WorkspaceView, errors=(404,), answer=EXAMPLE)
async def get(house: House, workspace: str) -> WorkspaceView:
    """Get one by its id."""
    root, origin = await _found(house, workspace)
    return await asyncio.to_thread(view, root, origin)


@routes.delete("/workspaces/{workspace}", scope="admin", errors=(404, 409), status=204)
async def remove(house: House, workspace: str) -> None:
    """Forget a folder that was added. Its files stay where they are."""
    _, origin = await _found(house, workspace)
    if origin != "added":
        raise UserError(f"It is the {origin}'s own folder.", kind="wrong_state", next=["nothing: it was not added"])
    await asyncio.to_thread(_forget, house, workspace)


async def ground(house: House, workspace: str) -> Ground:
    """Where the files of a workspace are. Raises NotFound."""
    root, _ = await _found(house, workspace)
    return Ground(root, places_of(house.app.config))


def id_of(root: Path) -> str:
    return hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()


def view(root: Path, origin: Origin) -> WorkspaceView:
    return WorkspaceView(
        id=id_of(root),
        path=printable(str(root)),
        name=printable(root.name or "/"),
        origin=origin,
        there=root.is_dir(),
        git=(root / ".git").exists(),
    )


async def _found(house: House, workspace: str) -> tuple[Path, Origin]:
    memory = house.files
    if workspace not in memory.roots or time.monotonic() > memory.until:
        memory.roots = await known(house)
        memory.until = time.monotonic() + memory.FRESH
    if workspace not in memory.roots:
        raise NotFound(f"There is no workspace {workspace!r}.", next=["GET /api/v1/workspaces lists all"])
    return memory.roots[workspace]


async def known(house: House) -> "dict[str, tuple[Path, Origin]]":
    sessions = {(one.workspace, bool(one.by)) for one in await house.app.runtime.sessions() if one.workspace}
    return await asyncio.to_thread(_gathered, house, sessions)


def _gathered(house: House, sessions: set[tuple[str, bool]]) -> "dict[str, tuple[Path, Origin]]":
    found: dict[str, tuple[Path, Origin]] = {}
    own: list[tuple[Path, Origin]] = [(house.workspace, "server")]
    added: list[tuple[Path, Origin]] = [(path, "added") for path in _added(house)]
    for path, origin in (*own, *added):
        root = real(path)
        if not refused(root, house):
            found.setdefault(id_of(root), (root, origin))
    # Those of the owner and of admins first: all others open nothing that is not open already.
    for text, weak in sorted(sessions, key=lambda each: (each[1], each[0])):
        root = Path(text)
        if id_of(root) not in found and not refused(root, house) and _opens(root, house, found, weak=weak):
            found[id_of(root)] = (root, "session")
    return found


def _opens(root: Path, house: House, found: "dict[str, tuple[Path, Origin]]", *, weak: bool) -> bool:
    """Whether a session that works there makes its folder known: not where a link has taken the folder's place."""
    if real(root) != root:
        return False
    inside = any(root.is_relative_to(known) for known, _ in found.values())
    # Who works in `/` or in their home means a part of it, and not to show all of it to every token.
    return inside or not (weak or places_of(house.app.config).home.is_relative_to(root))


def refused(root: Path, house: House) -> bool:
    """Whether the folder itself is nobody's business."""
    inside = ".git" in (part.casefold() for part in root.parts)
    return inside or guarded(root, writing=False, places=places_of(house.app.config)) is not None


def _add(house: House, given: str) -> WorkspaceView:
    if not given.startswith("/") or "\0" in given:
        raise UserError("The path is not absolute.", kind="bad_path", next=["give it from / on"])
    try:
        root = real(given)
        root.stat()
    except (OSError, ValueError) as error:
        raise UserError(f"{given} cannot be looked at: {error}.", kind="bad_path", next=["name a folder"]) from error
    if not root.is_dir():
        raise UserError(f"{given} is not a folder.", kind="not_a_directory", next=["name a folder"])
    if refused(root, house):
        raise UserError(f"{given} is protected.", kind="protected_path", next=["name another folder"])
    with house.files.lock(FILE):
        added = list(_added(house))
        if root not in added and root != real(house.workspace):
            if len(added) >= MOST:
                raise UserError(f"{MOST} folders are added already.", kind="conflict", next=["remove one of them"])
            _write(house, [*added, root])
    house.files.until = 0.0
    return view(root, "server" if root == real(house.workspace) else "added")


def _forget(house: House, workspace: str) -> None:
    with house.files.lock(FILE):
        _write(house, [path for path in _added(house) if id_of(path) != workspace])
    house.files.until = 0.0


def _added(house: House) -> Iterator[Path]:
    try:
        data = (house.app.config.data / FILE).read_bytes()
        yield from map(Path, msgspec.json.decode(data, type=list[str]))
    except (FileNotFoundError, msgspec.DecodeError):
        return


def _write(house: House, paths: list[Path]) -> None:
    file = house.app.config.data / FILE
    atomic.replace(file, msgspec.json.encode([str(path) for path in paths]), was=atomic.state(file), by="workspaces")
