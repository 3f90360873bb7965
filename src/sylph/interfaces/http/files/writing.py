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
from sylph.interfaces.http.files.filesystem import path_names, text_encoding
from sylph.interfaces.http.files.filesystem.atomic_write import AtomicFileWriter
from sylph.interfaces.http.files.filesystem.file_version import check_overwrite, file_etag
from sylph.interfaces.http.files.filesystem.location import FileLocation, open_location, translate_os_errors
from sylph.interfaces.http.files.filesystem.undo_exclusion import exclude_from_undo
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.reading import MAX_TEXT_BYTES
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.route import RouteGroup, Versioned
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("files")
IfMatch = Annotated[str, Header(max_length=2000, description="The version that is to be replaced: its ETag.")]
IfNoneMatch = Annotated[str, Header(max_length=2000, description="`*` for a file that must not be there yet.")]
Overwrite = Annotated[bool, Query(description="Replace what is there, whichever version it is.")]


class FileTextBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[
        str, Meta(max_length=MAX_TEXT_BYTES, description="The whole new text. Encoding and line ends are kept.")
    ]


class WrittenFileView(Struct, frozen=True, kw_only=True):
    path: str
    size: int
    modified: int
    created: bool


class WriteCondition(Struct, frozen=True, kw_only=True):
    """What may be replaced."""

    if_match: str
    if_none_match: str
    overwrite: bool


EXAMPLE = WrittenFileView(path="src/main.py", size=15, modified=1_762_000_000_000, created=False)


@routes.put(
    "/workspaces/{workspace}/files/text",
    scope="chat",
    gives=WrittenFileView,
    other=(201,),
    errors=(404, 408, 409, 412, 413, 507),
    upload=True,
    example=FileTextBody(text="print('hello')\n"),
    answer=EXAMPLE,
)
async def write_text_file(
    server: ServerState,
    workspace: str,
    path: path_names.FilePath,
    body: FileTextBody,
    *,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
    overwrite: Overwrite = False,
) -> Versioned[WrittenFileView]:
    """Write a text. A file that is there needs `If-Match` with the version you saw, or `overwrite`."""
    where = await find_workspace(server, workspace)
    wish = WriteCondition(if_match=if_match, if_none_match=if_none_match, overwrite=overwrite)
    async with exclude_from_undo(server, where, path):
        return await asyncio.to_thread(_write_text, server, where, path, body.text, wish)


def _write_text(
    server: ServerState, where: WorkspaceRoot, given: str, content: str, wish: WriteCondition
) -> Versioned[WrittenFileView]:
    with open_location(where, given, writing=True) as found, server.workspace_cache.lock_for(found.path):
        was = _check_condition(found, wish)
        data = text_encoding.encode_like_original(content, _read_original(found) if was else b"", found.display_path)
        with AtomicFileWriter(found) as draft:
            draft.write(data)
            return _commit_draft(found, draft, was)


def _read_original(found: FileLocation) -> bytes:
    fd = found.open_file()
    with os.fdopen(fd, "rb") as file:
        data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise UserError(
            f"{found.display_path} has more than {MAX_TEXT_BYTES:,} bytes.",
            kind="too_large",
            next=["upload it instead"],
        )
    return data


def _check_condition(found: FileLocation, wish: WriteCondition) -> os.stat_result | None:
    return check_overwrite(found, if_match=wish.if_match, if_none_match=wish.if_none_match, overwrite=wish.overwrite)


def _commit_draft(
    found: FileLocation, draft: AtomicFileWriter, was: os.stat_result | None
) -> Versioned[WrittenFileView]:
    stat = draft.commit(was)
    written = WrittenFileView(
        path=found.workspace.encode_path(found.path),
        size=stat.st_size,
        modified=stat.st_mtime_ns // 1_000_000,
        created=was is None,
    )
    return Versioned(written, file_etag(draft.fd), 201 if was is None else 200)


@routes.put(
    "/workspaces/{workspace}/files/content",
    scope="chat",
    gives=WrittenFileView,
    other=(201,),
    errors=(404, 408, 409, 412, 413, 507),
    upload=True,
    accepts="application/octet-stream",
    answer=EXAMPLE,
)
async def upload_file(
    server: ServerState,
    request: Request,
    workspace: str,
    path: path_names.FilePath,
    *,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
    overwrite: Overwrite = False,
) -> Versioned[WrittenFileView]:
    """Upload a file: the body is its content. It appears when it is whole, or not at all."""
    where = await find_workspace(server, workspace)
    wish = WriteCondition(if_match=if_match, if_none_match=if_none_match, overwrite=overwrite)
    with ExitStack() as stack:
        found, draft = await asyncio.to_thread(_begin_upload, stack, where, path, wish)
        with translate_os_errors(found.display_path):
            await _receive_body(request.stream(), draft)
            async with exclude_from_undo(server, where, path):
                return await asyncio.to_thread(_finish_upload, server, found, draft, wish)


def _begin_upload(
    stack: ExitStack, where: WorkspaceRoot, given: str, wish: WriteCondition
) -> tuple[FileLocation, AtomicFileWriter]:
    found = stack.enter_context(open_location(where, given, writing=True))
    # Whoever would be refused at the end need not send anything.
    _check_condition(found, wish)
    return found, stack.enter_context(AtomicFileWriter(found))


async def _receive_body(body: AsyncIterator[bytes], draft: AtomicFileWriter) -> None:
    """Straight to the disk. Raises where it is cut off; what is too large or too slow the door refuses."""
    try:
        async for data in body:
            if data:
                await asyncio.to_thread(draft.write, data)
    except ClientDisconnect as error:
        raise UserError("The upload was cut off.", kind="cut", next=["send it again"]) from error


def _finish_upload(
    server: ServerState, found: FileLocation, draft: AtomicFileWriter, wish: WriteCondition
) -> Versioned[WrittenFileView]:
    with server.workspace_cache.lock_for(found.path):
        return _commit_draft(found, draft, _check_condition(found, wish))
