"""Deleting over HTTP, which is moving to the trash; and getting things back from there."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Annotated

from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import copy_move, path_names, trash
from sylph.interfaces.http.files.filesystem.file_version import check_file_version
from sylph.interfaces.http.files.filesystem.location import FileLocation, make_folders, open_location
from sylph.interfaces.http.files.filesystem.protection import check_protection
from sylph.interfaces.http.files.filesystem.trash import TrashView
from sylph.interfaces.http.files.filesystem.undo_exclusion import exclude_from_undo
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.listing import EXAMPLE as ENTRY
from sylph.interfaces.http.files.listing import FileEntryView, describe_new_entry
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.files.writing import IfMatch
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("files")
EXAMPLE = TrashView(id="bcdfghjkmnpq", path="old.txt", kind="file", size=12, deleted=1_762_000_000_000, by="laptop")
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=200, description="Where to go on: the `next` of the page before.")]


class RestoreBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    to: Annotated[str, Meta(max_length=path_names.MAX_LENGTH, description="Where to; where it was if empty.")] = ""


@routes.delete(
    "/workspaces/{workspace}/files", scope="chat", gives=TrashView, errors=(404, 409, 412, 413, 507), answer=EXAMPLE
)
async def delete_file(
    server: ServerState, principal: Principal, workspace: str, path: path_names.FilePath, if_match: IfMatch = ""
) -> TrashView:
    """Put a file or folder into the trash. Of a link, the link itself."""
    where = await find_workspace(server, workspace)
    async with exclude_from_undo(server, where, path):
        return await asyncio.to_thread(_delete_entry, server, principal, where, path, if_match)


def _delete_entry(
    server: ServerState, principal: Principal, where: WorkspaceRoot, given: str, if_match: str
) -> TrashView:
    with open_location(where, given, writing=True, link=True) as found, server.workspace_cache.lock_for(found.path):
        found.require_stat()
        check_file_version(found, if_match)
        check_protection(where, found, found.path, moves=True)
        return trash.move_to_trash(server, principal, found)


@routes.get(
    "/workspaces/{workspace}/trash",
    scope="read",
    gives=ListPage[TrashView],
    errors=(404,),
    answer=ListPage(items=[EXAMPLE]),
)
async def list_trash(
    server: ServerState, workspace: str, limit: Limit = 200, cursor: Cursor = ""
) -> ListPage[TrashView]:
    """List what was deleted here, by persons and by agents, the latest first."""
    found = await asyncio.to_thread(trash.list_items, server, await find_workspace(server, workspace))
    left = [each for each in found if not cursor or _trash_cursor(each) < cursor]
    return ListPage(items=left[:limit], next=_trash_cursor(left[limit - 1]) if len(left) > limit else None)


def _trash_cursor(each: TrashView) -> str:
    return f"{each.deleted:015d}.{each.id}"


@routes.post(
    "/workspaces/{workspace}/trash/{id}/restore",
    scope="chat",
    gives=FileEntryView,
    errors=(404, 409, 413, 507),
    example=RestoreBody(),
    answer=ENTRY,
)
async def restore_file(server: ServerState, workspace: str, id: str, body: RestoreBody) -> FileEntryView:
    """Bring something back, to where it was or to another free place."""
    where = await find_workspace(server, workspace)
    place, origin = await asyncio.to_thread(trash.find_item, server, where, id)
    async with exclude_from_undo(server, where, body.to or origin.path):
        return await asyncio.to_thread(_restore_entry, server, where, place, body.to or origin.path, origin.path)


def _restore_entry(server: ServerState, where: WorkspaceRoot, place: Path, to: str, was: str) -> FileEntryView:
    with open_location(where, to, writing=True, link=True) as target, server.workspace_cache.lock_for(target.path):
        if target.stat() is not None:
            raise UserError(
                f"{target.display_path} exists already.",
                kind="exists",
                next=["give `to`", "or move what is there away"],
            )
        kept = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            source = FileLocation(workspace=where, path=target.path, fd=kept, name=trash.ITEM)
            check_protection(
                where, source, target.path, moves=False, home=where.root.joinpath(*path_names.split_path(was))
            )
            folder = make_folders(target.fd, target.missing)
            try:
                copy_move.move_entry(kept, trash.ITEM, folder, target.name)
                back = describe_new_entry(where, target.path, folder, target.name)
            finally:
                os.close(folder)
        finally:
            os.close(kept)
        shutil.rmtree(place, ignore_errors=True)
        return back


@routes.delete("/workspaces/{workspace}/trash/{id}", scope="chat", status=204, errors=(404, 409))
async def purge_file(server: ServerState, workspace: str, id: str) -> None:
    """Remove something from the trash for good. What an agent deleted goes with its session."""
    place, _ = await asyncio.to_thread(trash.find_item, server, await find_workspace(server, workspace), id)
    if "." in id:
        raise UserError(
            "It belongs to a session.", kind="wrong_state", next=["delete the session, and it goes with it"]
        )
    await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
