"""What was deleted, kept until somebody wants it back or wants it gone: also what agents have deleted here."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import NotFound
from sylph.core.ids import new_id
from sylph.core.permission.path_policy import real_path
from sylph.interfaces.http.files.filesystem import copy_move
from sylph.interfaces.http.files.filesystem.entry_kind import EntryKind, entry_kind
from sylph.interfaces.http.files.filesystem.location import FileLocation
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot, workspace_id
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.state.server_state import ServerState

FOLDER, ITEM, ORIGIN = "trash", "item", "origin.json"
TRASH_ID_PATTERN = re.compile(r"([A-Za-z0-9_-]{1,64}\.)?[A-Za-z0-9_-]{1,64}")


class TrashOrigin(Struct, frozen=True, kw_only=True):
    """Where something in the trash comes from. The agent's `delete` writes the first three of these, too."""

    path: str
    workspace: str
    call: str
    by: str = ""
    at: int = 0


class TrashView(Struct, frozen=True, kw_only=True):
    """`session` is the one whose agent has deleted it; missing for what a person did."""

    id: str
    path: str
    kind: EntryKind
    size: int
    deleted: int
    session: str | None = None
    by: str | None = None


def move_to_trash(server: ServerState, principal: Principal, spot: FileLocation) -> TrashView:
    """Puts something into the trash. Blocks; raises OSError, and then it is where it was."""
    spot.require_stat()
    id = new_id()
    place = _trash_folder(server, spot.workspace) / id
    place.mkdir(parents=True, mode=0o700)
    origin = TrashOrigin(
        path=spot.workspace.encode_path(spot.path),
        workspace=str(spot.workspace.root),
        call=id,
        by=principal.name,
        at=round(time.time() * 1000),
    )
    try:
        (place / ORIGIN).write_bytes(msgspec.json.encode(origin))
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            copy_move.move_entry(spot.fd, spot.name, fd, ITEM)
        finally:
            os.close(fd)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    found = _describe_item(place, id, "")
    assert found
    return found


def list_items(server: ServerState, ground: WorkspaceRoot) -> list[TrashView]:
    """All that was deleted in a workspace, the latest first. Blocks."""
    own = ((each, each.name, "") for each in _list_folders(_trash_folder(server, ground)))
    sessions = _list_folders(server.app.runtime.executor.private_folder(""))
    theirs = (
        (each, f"{session.name}.{each.name}", session.name)
        for session in sessions
        for each in _list_folders(session / FOLDER)
    )
    found = [
        view
        for place, id, by in (*own, *theirs)
        if _read_origin(place, ground) and (view := _describe_item(place, id, by))
    ]
    return sorted(found, key=lambda each: (each.deleted, each.id), reverse=True)


def find_item(server: ServerState, ground: WorkspaceRoot, id: str) -> tuple[Path, TrashOrigin]:
    """The folder something is kept in. Raises NotFound."""
    session, _, call = id.rpartition(".")
    base = server.app.runtime.executor.private_folder(session) / FOLDER if session else _trash_folder(server, ground)
    place = base / call
    if (
        not TRASH_ID_PATTERN.fullmatch(id)
        or not os.path.lexists(place / ITEM)
        or (origin := _read_origin(place, ground)) is None
    ):
        raise NotFound(f"There is nothing {id!r} in the trash of this workspace.", next=["GET …/trash lists it"])
    return place, origin


def _trash_folder(server: ServerState, ground: WorkspaceRoot) -> Path:
    return server.app.config.data / FOLDER / workspace_id(ground.root)


def _list_folders(place: Path) -> Iterator[Path]:
    try:
        yield from (Path(each.path) for each in sorted(os.scandir(place), key=lambda each: each.name) if each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return


def _read_origin(place: Path, ground: WorkspaceRoot) -> TrashOrigin | None:
    """Where it comes from; None for another workspace."""
    try:
        origin = msgspec.json.decode((place / ORIGIN).read_bytes(), type=TrashOrigin)
    except (OSError, msgspec.DecodeError):
        return None
    return origin if real_path(origin.workspace) == ground.root else None


def _describe_item(place: Path, id: str, session: str) -> TrashView | None:
    try:
        stat, told = (place / ITEM).lstat(), (place / ORIGIN).stat()
        origin = msgspec.json.decode((place / ORIGIN).read_bytes(), type=TrashOrigin)
    except (OSError, msgspec.DecodeError):
        return None
    kind = entry_kind(stat)
    return TrashView(
        id=id,
        path=origin.path,
        kind=kind,
        size=stat.st_size if kind == "file" else 0,
        deleted=origin.at or told.st_mtime_ns // 1_000_000,
        session=session or None,
        by=origin.by or None,
    )
