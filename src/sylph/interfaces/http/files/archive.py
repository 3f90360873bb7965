"""A whole folder as one zip, made while it is sent."""

import asyncio
import os
import time
import zipfile
from collections.abc import Iterator
from stat import S_ISDIR, S_ISREG
from typing import IO, cast

from starlette.responses import Response, StreamingResponse

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import copy_move, path_names
from sylph.interfaces.http.files.filesystem.location import open_location
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.reading import SAFE_HEADERS
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("files")
ZIP = "application/zip"
MAX_FILES, MAX_BYTES = 50_000, 2_000_000_000
CHUNK = 262_144
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class ZipBuffer:
    """Where a zip is written to; it cannot go back."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        return len(data)

    def flush(self) -> None: ...

    def drain(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return held


@routes.get("/workspaces/{workspace}/files/archive", scope="read", media=ZIP, errors=(404, 409, 413))
async def download_archive(server: ServerState, workspace: str, path: path_names.FolderPath = "") -> Response:
    """Download a folder as a zip. Links, devices and what is protected are left out: `X-Left-Out` tells how many."""
    where = await find_workspace(server, workspace)
    fd, base, left = await asyncio.to_thread(_open_folder, where, path)
    name = where.root.joinpath(base).name or "workspace"
    headers = {
        **SAFE_HEADERS,
        "Content-Disposition": path_names.content_disposition(f"{name}.zip"),
        "X-Left-Out": str(left),
    }
    return StreamingResponse(_zip_folder(where, fd, base), headers=headers, media_type=ZIP)


def _open_folder(where: WorkspaceRoot, given: str) -> tuple[int, str, int]:
    with open_location(where, given) as found:
        fd = found.open_folder()
        try:
            return fd, str(found.path.relative_to(where.root)), _count_left_out(where, fd, str(found.path))
        except BaseException:
            os.close(fd)
            raise


def _count_left_out(where: WorkspaceRoot, fd: int, folder: str) -> int:
    """How many are left out. Raises where the rest is too much."""
    files = size = left = 0
    for each in copy_move.walk_folder(fd):
        if S_ISDIR(each.stat.st_mode):
            continue
        if not _is_included(where, folder, each):
            left += 1
            continue
        files += 1
        size += each.stat.st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise UserError(
                f"The folder has more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes.",
                kind="too_large",
                next=["take a folder in it"],
            )
    return left


def _is_included(where: WorkspaceRoot, folder: str, each: copy_move.FileTreeEntry) -> bool:
    return S_ISREG(each.stat.st_mode) and not where.protection_reason(where.root / folder / each.path, writing=False)


def _zip_folder(where: WorkspaceRoot, fd: int, folder: str) -> Iterator[bytes]:
    """Run by threads, step by step. What has gone meanwhile, or cannot be read, is not in it."""
    sink = ZipBuffer()
    try:
        with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for each in copy_move.walk_folder(fd):
                if _is_included(where, folder, each):
                    yield from _zip_file(packed, sink, each)
        yield sink.drain()
    finally:
        os.close(fd)


def _zip_file(packed: zipfile.ZipFile, sink: ZipBuffer, each: copy_move.FileTreeEntry) -> Iterator[bytes]:
    try:
        file = os.open(each.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=each.fd)
    except OSError:
        return
    with os.fdopen(file, "rb") as content:
        if not S_ISREG(os.fstat(file).st_mode):
            return
        when = max(time.localtime(each.stat.st_mtime)[:6], ZIP_EPOCH)
        told = zipfile.ZipInfo(path_names.display_name(each.path), when)
        told.external_attr = (each.stat.st_mode & 0xFFFF) << 16
        told.compress_type = zipfile.ZIP_DEFLATED
        with packed.open(told, "w", force_zip64=each.stat.st_size > 1_000_000_000) as out:
            left = each.stat.st_size
            # What grows while it is read is cut where it ended when it was found.
            while left > 0 and (data := content.read(min(CHUNK, left))):
                left -= len(data)
                out.write(data)
                yield sink.drain()
