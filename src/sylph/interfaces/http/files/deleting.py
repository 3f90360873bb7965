"""Deleting over HTTP, which is moving to the trash; and getting things back from there."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Annotated

from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.errors import UserError
from sylph.interfaces.http.files import carry, names, trash
from sylph.interfaces.http.files.bystander import aside
from sylph.interfaces.http.files.guarding import stays_guarded
from sylph.interfaces.http.files.listing import EXAMPLE as ENTRY
from sylph.interfaces.http.files.listing import EntryView, made
from sylph.interfaces.http.files.spot import Ground, Spot, make_folders, spot
from sylph.interfaces.http.files.trash import TrashView
from sylph.interfaces.http.files.version import expected
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.files.writing import IfMatch
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.who import Who

routes = Routes("files")
EXAMPLE = TrashView(id="bcdfghjkmnpq", path="old.txt", kind="file", size=12, deleted=1_762_000_000_000, by="laptop")
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=200, description="Where to go on: the `next` of the page before.")]


class RestoreBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    to: Annotated[str, Meta(max_length=names.LONGEST, description="Where to; where it was if empty.")] = ""


@routes.delete(
    "/workspaces/{workspace}/files", scope="chat", gives=TrashView, errors=(404, 409, 412, 413, 507), answer=EXAMPLE
)
async def delete(house: House, who: Who, workspace: str, path: names.Named, if_match: IfMatch = "") -> TrashView:
    """Put a file or folder into the trash. Of a link, the link itself."""
    where = await ground(house, workspace)
    async with aside(house, where, path):
        return await asyncio.to_thread(_delete, house, who, where, path, if_match)


def _delete(house: House, who: Who, where: Ground, given: str, if_match: str) -> TrashView:
    with spot(where, given, writing=True, link=True) as found, house.files.lock(found.path):
        found.there()
        expected(found, if_match)
        stays_guarded(where, found, found.path, moves=True)
        return trash.bury(house, who, found)


@routes.get(
    "/workspaces/{workspace}/trash",
    scope="read",
    gives=Page[TrashView],
    errors=(404,),
    answer=Page(items=[EXAMPLE]),
)
async def list_trash(house: House, workspace: str, limit: Limit = 200, cursor: Cursor = "") -> Page[TrashView]:
    """List what was deleted here, by persons and by agents, the latest first."""
    found = await asyncio.to_thread(trash.everything, house, await ground(house, workspace))
    left = [each for each in found if not cursor or _place(each) < cursor]
    return Page(items=left[:limit], next=_place(left[limit - 1]) if len(left) > limit else None)


def _place(each: TrashView) -> str:
    return f"{each.deleted:015d}.{each.id}"


@routes.post(
    "/workspaces/{workspace}/trash/{id}/restore",
    scope="chat",
    gives=EntryView,
    errors=(404, 409, 413, 507),
    example=RestoreBody(),
    answer=ENTRY,
)
async def restore(house: House, workspace: str, id: str, body: RestoreBody) -> EntryView:
    """Bring something back, to where it was or to another free place."""
    where = await ground(house, workspace)
    place, origin = await asyncio.to_thread(trash.find, house, where, id)
    async with aside(house, where, body.to or origin.path):
        return await asyncio.to_thread(_restore, house, where, place, body.to or origin.path, origin.path)


def _restore(house: House, where: Ground, place: Path, to: str, was: str) -> EntryView:
    with spot(where, to, writing=True, link=True) as target, house.files.lock(target.path):
        if target.stat() is not None:
            raise UserError(
                f"{target.shown} exists already.", kind="exists", next=["give `to`", "or move what is there away"]
            )
        kept = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            source = Spot(ground=where, path=target.path, fd=kept, name=trash.ITEM)
            stays_guarded(where, source, target.path, moves=False, home=where.root.joinpath(*names.parts(was)))
            folder = make_folders(target.fd, target.missing)
            try:
                carry.move(kept, trash.ITEM, folder, target.name)
                back = made(where, target.path, folder, target.name)
            finally:
                os.close(folder)
        finally:
            os.close(kept)
        shutil.rmtree(place, ignore_errors=True)
        return back


@routes.delete("/workspaces/{workspace}/trash/{id}", scope="chat", status=204, errors=(404, 409))
async def forget(house: House, workspace: str, id: str) -> None:
    """Remove something from the trash for good. What an agent deleted goes with its session."""
    place, _ = await asyncio.to_thread(trash.find, house, await ground(house, workspace), id)
    if "." in id:
        raise UserError(
            "It belongs to a session.", kind="wrong_state", next=["delete the session, and it goes with it"]
        )
    await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
