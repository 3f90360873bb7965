"""Who Sylph is, over HTTP: the user's soul, rules and deployment, with their earlier versions."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from sylph.core.errors import NotFound
from sylph.features.identity.identity_notes import IDENTITY_FILES, MAX_LENGTH
from sylph.interfaces.actions.file_versions import FileVersion, VersionedFile, content_tag
from sylph.interfaces.actions.identity_files import open_identity_file, validate_identity_text
from sylph.interfaces.http.kit.route import ListPage, RouteGroup, Versioned, check_if_match
from sylph.interfaces.http.settings.config import IfMatch
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("identity")
NONE = "none"


class IdentityView(Struct, frozen=True, kw_only=True):
    """One of the files. What is longer than `most` characters is not told to models."""

    name: str
    file: str
    about: str
    there: bool
    text: str = ""
    cut: bool = False
    most: int = MAX_LENGTH


class IdentityBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=100_000, description="Markdown, up to 20,000 characters.")]


class IdentityVersionView(Struct, frozen=True, kw_only=True):
    id: str
    text: str


EXAMPLE = IdentityView(name="soul", file="/home/ann/.sylph/SOUL.md", about="who Sylph is", there=True, text="Calm.")


@routes.get("/identity", scope="read", gives=ListPage[IdentityView], answer=ListPage(items=[EXAMPLE]))
async def list_identity(server: ServerState) -> ListPage[IdentityView]:
    """The files that tell Sylph who it is. A session is told of a change before its next turn."""
    return ListPage(
        items=[_identity_view(name, open_identity_file(server.app.config, name)) for name in IDENTITY_FILES]
    )


@routes.get("/identity/{name}", scope="read", gives=IdentityView, errors=(404,), answer=EXAMPLE)
async def get_identity(server: ServerState, name: str) -> Versioned[IdentityView]:
    """One of them: `soul`, `rules` or `deployment`."""
    return _versioned_view(name, open_identity_file(server.app.config, name))


@routes.put(
    "/identity/{name}",
    scope="admin",
    gives=IdentityView,
    errors=(404, 412, 413),
    example=IdentityBody(text="You are calm and brief.\n"),
    answer=EXAMPLE,
)
async def put_identity(
    server: ServerState, name: str, body: IdentityBody, if_match: IfMatch = ""
) -> Versioned[IdentityView]:
    """Write one of them; the text before is kept as an earlier version."""
    return await _write_identity(server, name, validate_identity_text(body.text), if_match)


@routes.delete("/identity/{name}", scope="admin", errors=(404, 412))
async def delete_identity(server: ServerState, name: str, if_match: IfMatch = "") -> None:
    """Take one of them away; it can be restored."""
    if open_identity_file(server.app.config, name).read_text() is None:
        raise NotFound(f"There is no {IDENTITY_FILES[name].file}.", next=["PUT writes it"])
    await _write_identity(server, name, None, if_match)


@routes.get("/identity/{name}/versions", scope="read", gives=ListPage[FileVersion], errors=(404,))
async def list_identity_versions(server: ServerState, name: str) -> ListPage[FileVersion]:
    """Earlier versions, the newest first."""
    return ListPage(items=open_identity_file(server.app.config, name).list_versions())


@routes.get("/identity/{name}/versions/{id}", scope="read", gives=IdentityVersionView, errors=(404,))
async def get_identity_version(server: ServerState, name: str, id: str) -> IdentityVersionView:
    """The text of an earlier version."""
    return IdentityVersionView(id=id, text=open_identity_file(server.app.config, name).read_version(id))


@routes.post(
    "/identity/{name}/versions/{id}/restore", scope="admin", gives=IdentityView, errors=(404, 412), answer=EXAMPLE
)
async def restore_identity(server: ServerState, name: str, id: str, if_match: IfMatch = "") -> Versioned[IdentityView]:
    """Make an earlier version count again."""
    text = open_identity_file(server.app.config, name).read_version(id)
    return await _write_identity(server, name, text, if_match)


async def _write_identity(server: ServerState, name: str, text: str | None, if_match: str) -> Versioned[IdentityView]:
    async with server.edit_lock:
        file = open_identity_file(server.app.config, name)
        check_if_match(_identity_etag(file.read_text()), if_match)
        await asyncio.to_thread(file.write, text)
    return _versioned_view(name, file)


def _versioned_view(name: str, file: VersionedFile) -> Versioned[IdentityView]:
    return Versioned(_identity_view(name, file), _identity_etag(file.read_text()))


def _identity_etag(text: str | None) -> str:
    return NONE if text is None else content_tag(text)


def _identity_view(name: str, file: VersionedFile) -> IdentityView:
    text = file.read_text()
    return IdentityView(
        name=name,
        file=str(file.file),
        about=IDENTITY_FILES[name].about,
        there=text is not None,
        text=(text or "")[: MAX_LENGTH * 10],
        cut=len(text or "") > MAX_LENGTH,
    )
