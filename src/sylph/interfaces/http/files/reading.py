"""Files read over HTTP: as text to be looked at, or as the bytes they are."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Header, Query
from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import path_names
from sylph.interfaces.http.files.filesystem import text_encoding as texts
from sylph.interfaces.http.files.filesystem.file_version import CHUNK, file_etag
from sylph.interfaces.http.files.filesystem.location import open_location
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import RouteGroup, Versioned, etag_matches
from sylph.interfaces.http.state.server_state import ServerState
from sylph.tools.files.read.images import media_of
from sylph.tools.files.text_file import SAMPLE

routes = RouteGroup("files")
MAX_TEXT_BYTES = 5_000_000
BINARY = "application/octet-stream"
# What a file says is never run in our origin, whatever a browser takes it for.
SAFE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cache-Control": "private, no-cache",
}
RANGE_PATTERN = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class FileView(Struct, frozen=True, kw_only=True):
    """A file to be looked at. `text` is missing where it holds none."""

    name: str
    path: str
    size: int
    modified: int
    mode: str
    """Its permissions, as an octal number."""
    media: str
    text: str | None = None
    encoding: texts.TextEncoding | None = None
    """`unknown` is shown with � for its odd bytes, and cannot be edited as text."""
    line_ends: texts.LineEnds | None = None


EXAMPLE = FileView(
    name="main.py",
    path="src/main.py",
    size=15,
    modified=1_762_000_000_000,
    mode="644",
    media="text/plain",
    text="print('hello')\n",
    encoding="utf-8",
    line_ends="lf",
)


@routes.get("/workspaces/{workspace}/files/text", scope="read", gives=FileView, errors=(404, 409, 413), answer=EXAMPLE)
async def view_file(server: ServerState, workspace: str, path: path_names.FilePath) -> Versioned[FileView]:
    """View a file: its text, how it is written, and as ETag its version."""
    return await asyncio.to_thread(_view_file, await find_workspace(server, workspace), path)


def _view_file(where: WorkspaceRoot, given: str) -> Versioned[FileView]:
    with open_location(where, given) as found:
        fd = found.open_file()
        try:
            return Versioned(describe_file(where, found.path.name, where.encode_path(found.path), fd), file_etag(fd))
        finally:
            os.close(fd)


def describe_file(_: WorkspaceRoot, name: str, told: str, fd: int) -> FileView:
    stat = os.fstat(fd)
    head = os.pread(fd, SAMPLE, 0)
    image = media_of(head)
    content = None
    if not image and (texts.decode_text(head) or b"\0" not in head):
        if stat.st_size > MAX_TEXT_BYTES:
            raise UserError(
                f"{path_names.display_name(name)} has more than {MAX_TEXT_BYTES:,} bytes.",
                kind="too_large",
                details={"size": stat.st_size},
                next=["get it, or a range of it: GET …/files/content"],
            )
        content = texts.decode_text(_read_all(fd, stat.st_size))
    return FileView(
        name=path_names.display_name(name),
        path=told,
        size=stat.st_size,
        modified=stat.st_mtime_ns // 1_000_000,
        mode=f"{stat.st_mode & 0o7777:o}",
        media=image or ("text/plain" if content else BINARY),
        text=content.content if content else None,
        encoding=content.encoding if content else None,
        line_ends=content.line_ends if content else None,
    )


def _read_all(fd: int, size: int) -> bytes:
    data = bytearray()
    while len(data) <= size and (piece := os.pread(fd, CHUNK, len(data))):
        data += piece
    return bytes(data)


@routes.get("/workspaces/{workspace}/files/content", scope="read", media="*/*", errors=(404, 409, 412, 416))
async def download_file(
    server: ServerState,
    workspace: str,
    path: path_names.FilePath,
    *,
    inline: Annotated[bool, Query(description="To be shown: images and plain text only.")] = False,
    version: Annotated[str, Query(max_length=200, description="Only the version with this ETag.")] = "",
    range: Annotated[str, Header(max_length=200)] = "",
    if_range: Annotated[str, Header(max_length=200)] = "",
    if_none_match: Annotated[str, Header(max_length=2000)] = "",
) -> Response:
    """Download a file, or a range of it."""
    where = await find_workspace(server, workspace)
    fd, tag, size, name = await asyncio.to_thread(_open_file, where, path)
    try:
        if version and not etag_matches(tag, version):
            raise AccessDenied("Somebody changed it meanwhile.", kind="changed", next=["read it again"])
        headers = {**SAFE_HEADERS, "ETag": f'"{tag}"', "Accept-Ranges": "bytes"}
        if if_none_match and etag_matches(tag, if_none_match):
            os.close(fd)
            return Response(status_code=304, headers=headers)
        media = await asyncio.to_thread(_inline_media_type, fd) if inline else ""
        headers["Content-Disposition"] = path_names.content_disposition(name, inline=bool(media))
        wanted = _parse_range(range, size) if not if_range or if_range.strip('"') == tag else None
        first, last = wanted or (0, size - 1)
        headers["Content-Length"] = str(last - first + 1)
        if wanted:
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    except BaseException:
        os.close(fd)
        raise
    return StreamingResponse(
        _stream_chunks(fd, first, last), status_code=206 if wanted else 200, headers=headers, media_type=media or BINARY
    )


def _open_file(where: WorkspaceRoot, given: str) -> tuple[int, str, int, str]:
    with open_location(where, given) as found:
        fd = found.open_file()
        try:
            return fd, file_etag(fd), os.fstat(fd).st_size, found.path.name
        except BaseException:
            os.close(fd)
            raise


def _inline_media_type(fd: int) -> str:
    """The type of what a browser may show of ours: images that are no documents, and plain text."""
    head = os.pread(fd, SAMPLE, 0)
    if image := media_of(head):
        return image
    return (
        "text/plain; charset=utf-8" if (found := texts.decode_text(head)) and found.encoding.startswith("utf-8") else ""
    )


def _parse_range(given: str, size: int) -> tuple[int, int] | None:
    """The first and the last byte that are wanted; None for all, also where several ranges are asked for."""
    found = RANGE_PATTERN.fullmatch(given.replace(" ", ""))
    if not found or found.group(1, 2) == ("", ""):
        return None
    begin, end = found.group(1, 2)
    first = int(begin) if begin else max(size - int(end), 0)
    last = min(int(end), size - 1) if begin and end else size - 1
    if begin and end and int(end) < int(begin):
        return None
    if first > last:
        raise AccessDenied(
            f"The file has {size} bytes.", kind="bad_range", details={"size": size}, next=["ask for bytes that it has"]
        )
    return first, last


async def _stream_chunks(fd: int, first: int, last: int) -> AsyncGenerator[bytes, None]:
    try:
        while first <= last and (data := await asyncio.to_thread(os.pread, fd, min(CHUNK, last - first + 1), first)):
            yield data
            first += len(data)
    finally:
        os.close(fd)
