"""Folders made, files and folders renamed, moved and copied over HTTP."""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

from msgspec import Meta, Struct

from sylph.core.errors import UserError
from sylph.interfaces.http.files import carry, names
from sylph.interfaces.http.files.bystander import aside
from sylph.interfaces.http.files.guarding import stays_guarded
from sylph.interfaces.http.files.listing import EXAMPLE as ENTRY
from sylph.interfaces.http.files.listing import EntryView, made
from sylph.interfaces.http.files.spot import Ground, Spot, make_folders, spot
from sylph.interfaces.http.files.trash import bury
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.who import Who

routes = Routes("files")
ELSEWHERE = "choose another place for it"
Carry = Callable[[int, str, int, str], None]


class FolderBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: names.Given


class MoveBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: names.Given
    to: names.Given
    overwrite: Annotated[bool, Meta(description="What is there goes into the trash first.")] = False


@routes.post(
    "/workspaces/{workspace}/files/folder",
    scope="chat",
    gives=EntryView,
    status=201,
    errors=(404, 409, 507),
    example=FolderBody(path="src/new"),
    answer=ENTRY,
)
async def make_folder(house: House, workspace: str, body: FolderBody) -> EntryView:
    """Make a folder, and those above it. One that is there already is refused."""
    where = await ground(house, workspace)
    async with aside(house, where, body.path):
        return await asyncio.to_thread(_make, where, body.path)


def _make(where: Ground, given: str) -> EntryView:
    with spot(where, given, writing=True) as found:
        if found.stat() is not None:
            raise UserError(f"{found.shown} exists already.", kind="exists", next=["use it, or another name"])
        folder = make_folders(found.fd, found.missing)
        try:
            os.mkdir(found.name, dir_fd=folder)
            carry.settle(folder)
            return made(where, found.path, folder, found.name)
        except FileExistsError as error:
            raise UserError(f"{found.shown} exists already.", kind="exists", next=["use it"]) from error
        finally:
            os.close(folder)


@routes.post(
    "/workspaces/{workspace}/files/move",
    scope="chat",
    gives=EntryView,
    errors=(404, 409, 413, 507),
    example=MoveBody(path="a.txt", to="old/a.txt"),
    answer=ENTRY,
)
async def move(house: House, who: Who, workspace: str, body: MoveBody) -> EntryView:
    """Rename or move a file or folder. Of a link, the link itself is moved."""
    where = await ground(house, workspace)
    async with aside(house, where, body.path, body.to):
        return await asyncio.to_thread(_carried, house, who, where, body, carry.move)


@routes.post(
    "/workspaces/{workspace}/files/copy",
    scope="chat",
    gives=EntryView,
    status=201,
    errors=(404, 409, 413, 507),
    example=MoveBody(path="a.txt", to="b.txt"),
    answer=ENTRY,
)
async def copy(house: House, who: Who, workspace: str, body: MoveBody) -> EntryView:
    """Copy a file or folder. Links in it stay links."""
    where = await ground(house, workspace)
    async with aside(house, where, body.to):
        return await asyncio.to_thread(_carried, house, who, where, body, carry.copy)


def _carried(house: House, who: Who, where: Ground, body: MoveBody, how: Carry) -> EntryView:
    with _ends(where, body, moves=how is carry.move) as (source, target), house.files.lock(target.path):
        if target.stat() is not None:
            if not body.overwrite:
                raise UserError(
                    f"{target.shown} exists already.", kind="exists", next=["overwrite=true", "or another name"]
                )
            bury(house, who, target)
        folder = make_folders(target.fd, target.missing)
        try:
            how(source.fd, source.name, folder, target.name)
            return made(where, target.path, folder, target.name)
        finally:
            os.close(folder)


@contextmanager
def _ends(where: Ground, body: MoveBody, *, moves: bool) -> Generator[tuple[Spot, Spot]]:
    with (
        spot(where, body.path, writing=moves, link=True) as source,
        spot(where, body.to, writing=True, link=True) as target,
    ):
        source.there()
        if source.path == target.path or target.path.is_relative_to(source.path):
            raise UserError(
                f"{source.shown} cannot go to {target.shown}: that is itself, or lies inside it.",
                kind="bad_path",
                next=[ELSEWHERE],
            )
        if source.path.is_relative_to(target.path):
            raise UserError(
                f"{target.shown} is a folder that holds {source.shown}: it cannot be replaced by it.",
                kind="bad_path",
                next=[ELSEWHERE],
            )
        stays_guarded(where, source, target.path, moves=moves)
        yield source, target
