"""Folders made, files and folders renamed, moved and copied over HTTP."""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

from msgspec import Meta, Struct

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import copy_move, path_names
from sylph.interfaces.http.files.filesystem.location import FileLocation, make_folders, open_location
from sylph.interfaces.http.files.filesystem.protection import check_protection
from sylph.interfaces.http.files.filesystem.trash import move_to_trash
from sylph.interfaces.http.files.filesystem.undo_exclusion import exclude_from_undo
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.listing import EXAMPLE as ENTRY
from sylph.interfaces.http.files.listing import FileEntryView, describe_new_entry
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("files")
OTHER_PLACE_HINT = "choose another place for it"
TransferFunction = Callable[[int, str, int, str], None]


class FolderBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: path_names.BodyPath


class MoveBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: path_names.BodyPath
    to: path_names.BodyPath
    overwrite: Annotated[bool, Meta(description="What is there goes into the trash first.")] = False


@routes.post(
    "/workspaces/{workspace}/files/folder",
    scope="chat",
    gives=FileEntryView,
    status=201,
    errors=(404, 409, 507),
    example=FolderBody(path="src/new"),
    answer=ENTRY,
)
async def make_folder(server: ServerState, workspace: str, body: FolderBody) -> FileEntryView:
    """Make a folder, and those above it. One that is there already is refused."""
    where = await find_workspace(server, workspace)
    async with exclude_from_undo(server, where, body.path):
        return await asyncio.to_thread(_create_folder, where, body.path)


def _create_folder(where: WorkspaceRoot, given: str) -> FileEntryView:
    with open_location(where, given, writing=True) as found:
        if found.stat() is not None:
            raise UserError(f"{found.display_path} exists already.", kind="exists", next=["use it, or another name"])
        folder = make_folders(found.fd, found.missing)
        try:
            os.mkdir(found.name, dir_fd=folder)
            copy_move.sync_folder(folder)
            return describe_new_entry(where, found.path, folder, found.name)
        except FileExistsError as error:
            raise UserError(f"{found.display_path} exists already.", kind="exists", next=["use it"]) from error
        finally:
            os.close(folder)


@routes.post(
    "/workspaces/{workspace}/files/move",
    scope="chat",
    gives=FileEntryView,
    errors=(404, 409, 413, 507),
    example=MoveBody(path="a.txt", to="old/a.txt"),
    answer=ENTRY,
)
async def move_file(server: ServerState, principal: Principal, workspace: str, body: MoveBody) -> FileEntryView:
    """Rename or move a file or folder. Of a link, the link itself is moved."""
    where = await find_workspace(server, workspace)
    async with exclude_from_undo(server, where, body.path, body.to):
        return await asyncio.to_thread(_transfer_entry, server, principal, where, body, copy_move.move_entry)


@routes.post(
    "/workspaces/{workspace}/files/copy",
    scope="chat",
    gives=FileEntryView,
    status=201,
    errors=(404, 409, 413, 507),
    example=MoveBody(path="a.txt", to="b.txt"),
    answer=ENTRY,
)
async def copy_file(server: ServerState, principal: Principal, workspace: str, body: MoveBody) -> FileEntryView:
    """Copy a file or folder. Links in it stay links."""
    where = await find_workspace(server, workspace)
    async with exclude_from_undo(server, where, body.to):
        return await asyncio.to_thread(_transfer_entry, server, principal, where, body, copy_move.copy_entry)


def _transfer_entry(
    server: ServerState, principal: Principal, where: WorkspaceRoot, body: MoveBody, how: TransferFunction
) -> FileEntryView:
    with (
        _open_both_ends(where, body, moves=how is copy_move.move_entry) as (source, target),
        server.workspace_cache.lock_for(target.path),
    ):
        if target.stat() is not None:
            if not body.overwrite:
                raise UserError(
                    f"{target.display_path} exists already.", kind="exists", next=["overwrite=true", "or another name"]
                )
            move_to_trash(server, principal, target)
        folder = make_folders(target.fd, target.missing)
        try:
            how(source.fd, source.name, folder, target.name)
            return describe_new_entry(where, target.path, folder, target.name)
        finally:
            os.close(folder)


@contextmanager
def _open_both_ends(
    where: WorkspaceRoot, body: MoveBody, *, moves: bool
) -> Generator[tuple[FileLocation, FileLocation]]:
    with (
        open_location(where, body.path, writing=moves, link=True) as source,
        open_location(where, body.to, writing=True, link=True) as target,
    ):
        source.require_stat()
        if source.path == target.path or target.path.is_relative_to(source.path):
            raise UserError(
                f"{source.display_path} cannot go to {target.display_path}: that is itself, or lies inside it.",
                kind="bad_path",
                next=[OTHER_PLACE_HINT],
            )
        if source.path.is_relative_to(target.path):
            raise UserError(
                f"{target.display_path} is a folder that holds {source.display_path}: it cannot be replaced by it.",
                kind="bad_path",
                next=[OTHER_PLACE_HINT],
            )
        check_protection(where, source, target.path, moves=moves)
        yield source, target
