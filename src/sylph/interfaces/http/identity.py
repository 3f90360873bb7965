"""Who Sylph is, over HTTP: the user's soul, rules and deployment, with their earlier versions."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from sylph.core.errors import NotFound
from sylph.faculties.identity import LONGEST, PARTS
from sylph.interfaces.http.config import IfMatch
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes, Versioned, unchanged
from sylph.interfaces.versions import Version, Versions, tag_of
from sylph.interfaces.written import fits, written

routes = Routes("identity")
NONE = "none"


class IdentityView(Struct, frozen=True, kw_only=True):
    """One of the files. What is longer than `most` characters is not told to models."""

    name: str
    file: str
    about: str
    there: bool
    text: str = ""
    cut: bool = False
    most: int = LONGEST


class IdentityBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=100_000, description="Markdown, up to 20,000 characters.")]


class VersionView(Struct, frozen=True, kw_only=True):
    id: str
    text: str


EXAMPLE = IdentityView(name="soul", file="/home/ann/.sylph/SOUL.md", about="who Sylph is", there=True, text="Calm.")


@routes.get("/identity", scope="read", gives=Page[IdentityView], answer=Page(items=[EXAMPLE]))
async def list_(house: House) -> Page[IdentityView]:
    """The files that tell Sylph who it is. A session is told of a change before its next turn."""
    return Page(items=[_view(name, written(house.app.config, name)) for name in PARTS])


@routes.get("/identity/{name}", scope="read", gives=IdentityView, errors=(404,), answer=EXAMPLE)
async def get(house: House, name: str) -> Versioned[IdentityView]:
    """One of them: `soul`, `rules` or `deployment`."""
    return _versioned(name, written(house.app.config, name))


@routes.put(
    "/identity/{name}",
    scope="admin",
    gives=IdentityView,
    errors=(404, 412, 413),
    example=IdentityBody(text="You are calm and brief.\n"),
    answer=EXAMPLE,
)
async def put(house: House, name: str, body: IdentityBody, if_match: IfMatch = "") -> Versioned[IdentityView]:
    """Write one of them; the text before is kept as an earlier version."""
    return await _write(house, name, fits(body.text), if_match)


@routes.delete("/identity/{name}", scope="admin", errors=(404, 412))
async def delete(house: House, name: str, if_match: IfMatch = "") -> None:
    """Take one of them away; it can be restored."""
    if written(house.app.config, name).text() is None:
        raise NotFound(f"There is no {PARTS[name].file}.", next=["PUT writes it"])
    await _write(house, name, None, if_match)


@routes.get("/identity/{name}/versions", scope="read", gives=Page[Version], errors=(404,))
async def versions(house: House, name: str) -> Page[Version]:
    """Earlier versions, the newest first."""
    return Page(items=written(house.app.config, name).all())


@routes.get("/identity/{name}/versions/{id}", scope="read", gives=VersionView, errors=(404,))
async def version(house: House, name: str, id: str) -> VersionView:
    """The text of an earlier version."""
    return VersionView(id=id, text=written(house.app.config, name).get(id))


@routes.post(
    "/identity/{name}/versions/{id}/restore", scope="admin", gives=IdentityView, errors=(404, 412), answer=EXAMPLE
)
async def restore(house: House, name: str, id: str, if_match: IfMatch = "") -> Versioned[IdentityView]:
    """Make an earlier version count again."""
    text = written(house.app.config, name).get(id)
    return await _write(house, name, text, if_match)


async def _write(house: House, name: str, text: str | None, if_match: str) -> Versioned[IdentityView]:
    async with house.editing:
        file = written(house.app.config, name)
        unchanged(_tag(file.text()), if_match)
        await asyncio.to_thread(file.write, text)
    return _versioned(name, file)


def _versioned(name: str, file: Versions) -> Versioned[IdentityView]:
    return Versioned(_view(name, file), _tag(file.text()))


def _tag(text: str | None) -> str:
    return NONE if text is None else tag_of(text)


def _view(name: str, file: Versions) -> IdentityView:
    text = file.text()
    return IdentityView(
        name=name,
        file=str(file.file),
        about=PARTS[name].about,
        there=text is not None,
        text=(text or "")[: LONGEST * 10],
        cut=len(text or "") > LONGEST,
    )
