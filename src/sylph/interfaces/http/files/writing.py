"""Files written over HTTP, as text or as they are. Nothing is overwritten that the writer did not see."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated

from fastapi import Header, Query, Request
from msgspec import Meta, Struct
from starlette.requests import ClientDisconnect

from sylph.core.errors import UserError
from sylph.interfaces.http.files import names, text
from sylph.interfaces.http.files.bystander import aside
from sylph.interfaces.http.files.draft import Draft
from sylph.interfaces.http.files.reading import SHOWN
from sylph.interfaces.http.files.spot import Ground, Spot, reported, spot
from sylph.interfaces.http.files.version import admit, tag_of
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes, Versioned

routes = Routes("files")
IfMatch = Annotated[str, Header(max_length=2000, description="The version that is to be replaced: its ETag.")]
IfNoneMatch = Annotated[str, Header(max_length=2000, description="`*` for a file that must not be there yet.")]
Overwrite = Annotated[bool, Query(description="Replace what is there, whichever version it is.")]


class TextBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=SHOWN, description="The whole new text. Encoding and line ends are kept.")]


class WrittenView(Struct, frozen=True, kw_only=True):
    path: str
    size: int
    modified: int
    created: bool


class Wish(Struct, frozen=True, kw_only=True):
    """What may be replaced."""

    if_match: str
    if_none_match: str
    overwrite: bool


EXAMPLE = WrittenView(path="src/main.py", size=15, modified=1_762_000_000_000, created=False)


@routes.put(
    "/workspaces/{workspace}/files/text",
    scope="chat",
    gives=WrittenView,
    other=(201,),
    errors=(404, 408, 409, 412, 413, 507),
    upload=True,
    example=TextBody(text="print('hello')\n"),
    answer=EXAMPLE,
)
async def edit(
    house: House,
    workspace: str,
    path: names.Named,
    body: TextBody,
    *,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
    overwrite: Overwrite = False,
) -> Versioned[WrittenView]:
    """Write a text. A file that is there needs `If-Match` with the version you saw, or `overwrite`."""
    where = await ground(house, workspace)
    wish = Wish(if_match=if_match, if_none_match=if_none_match, overwrite=overwrite)
    async with aside(house, where, path):
        return await asyncio.to_thread(_edit, house, where, path, body.text, wish)


def _edit(house: House, where: Ground, given: str, content: str, wish: Wish) -> Versioned[WrittenView]:
    with spot(where, given, writing=True) as found, house.files.lock(found.path):
        was = _admit(found, wish)
        data = text.dress(content, _old(found) if was else b"", found.shown)
        with Draft(found) as draft:
            draft.write(data)
            return _placed(found, draft, was)


def _old(found: Spot) -> bytes:
    fd = found.file()
    with os.fdopen(fd, "rb") as file:
        data = file.read(SHOWN + 1)
    if len(data) > SHOWN:
        raise UserError(f"{found.shown} has more than {SHOWN:,} bytes.", kind="too_large", next=["upload it instead"])
    return data


def _admit(found: Spot, wish: Wish) -> os.stat_result | None:
    return admit(found, if_match=wish.if_match, if_none_match=wish.if_none_match, overwrite=wish.overwrite)


def _placed(found: Spot, draft: Draft, was: os.stat_result | None) -> Versioned[WrittenView]:
    stat = draft.place(was)
    written = WrittenView(
        path=found.ground.told(found.path),
        size=stat.st_size,
        modified=stat.st_mtime_ns // 1_000_000,
        created=was is None,
    )
    return Versioned(written, tag_of(draft.fd), 201 if was is None else 200)


@routes.put(
    "/workspaces/{workspace}/files/content",
    scope="chat",
    gives=WrittenView,
    other=(201,),
    errors=(404, 408, 409, 412, 413, 507),
    upload=True,
    accepts="application/octet-stream",
    answer=EXAMPLE,
)
async def upload(
    house: House,
    request: Request,
    workspace: str,
    path: names.Named,
    *,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
    overwrite: Overwrite = False,
) -> Versioned[WrittenView]:
    """Upload a file: the body is its content. It appears when it is whole, or not at all."""
    where = await ground(house, workspace)
    wish = Wish(if_match=if_match, if_none_match=if_none_match, overwrite=overwrite)
    with ExitStack() as stack:
        found, draft = await asyncio.to_thread(_begun, stack, where, path, wish)
        with reported(found.shown):
            await _take(request.stream(), draft)
            async with aside(house, where, path):
                return await asyncio.to_thread(_finished, house, found, draft, wish)


def _begun(stack: ExitStack, where: Ground, given: str, wish: Wish) -> tuple[Spot, Draft]:
    found = stack.enter_context(spot(where, given, writing=True))
    # Whoever would be refused at the end need not send anything.
    _admit(found, wish)
    return found, stack.enter_context(Draft(found))


async def _take(body: AsyncIterator[bytes], draft: Draft) -> None:
    """Straight to the disk. Raises where it is cut off; what is too large or too slow the door refuses."""
    try:
        async for data in body:
            if data:
                await asyncio.to_thread(draft.write, data)
    except ClientDisconnect as error:
        raise UserError("The upload was cut off.", kind="cut", next=["send it again"]) from error


def _finished(house: House, found: Spot, draft: Draft, wish: Wish) -> Versioned[WrittenView]:
    with house.files.lock(found.path):
        return _placed(found, draft, _admit(found, wish))
