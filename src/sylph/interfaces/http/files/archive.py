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
from sylph.interfaces.http.files import carry, names
from sylph.interfaces.http.files.reading import SAFE
from sylph.interfaces.http.files.spot import Ground, spot
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes

routes = Routes("files")
ZIP = "application/zip"
FILES, BYTES = 50_000, 2_000_000_000
CHUNK = 262_144
FIRST = (1980, 1, 1, 0, 0, 0)


class Sink:
    """Where a zip is written to; it cannot go back."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        return len(data)

    def flush(self) -> None: ...

    def taken(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return held


@routes.get("/workspaces/{workspace}/files/archive", scope="read", media=ZIP, errors=(404, 409, 413))
async def archive(house: House, workspace: str, path: names.Where = "") -> Response:
    """Download a folder as a zip. Links, devices and what is protected are left out: `X-Left-Out` tells how many."""
    where = await ground(house, workspace)
    fd, base, left = await asyncio.to_thread(_opened, where, path)
    name = where.root.joinpath(base).name or "workspace"
    headers = {**SAFE, "Content-Disposition": names.disposition(f"{name}.zip"), "X-Left-Out": str(left)}
    return StreamingResponse(_zipped(where, fd, base), headers=headers, media_type=ZIP)


def _opened(where: Ground, given: str) -> tuple[int, str, int]:
    with spot(where, given) as found:
        fd = found.folder()
        try:
            return fd, str(found.path.relative_to(where.root)), _measured(where, fd, str(found.path))
        except BaseException:
            os.close(fd)
            raise


def _measured(where: Ground, fd: int, folder: str) -> int:
    """How many are left out. Raises where the rest is too much."""
    files = size = left = 0
    for each in carry.walk(fd):
        if S_ISDIR(each.stat.st_mode):
            continue
        if not _wanted(where, folder, each):
            left += 1
            continue
        files += 1
        size += each.stat.st_size
        if files > FILES or size > BYTES:
            raise UserError(
                f"The folder has more than {FILES:,} files or {BYTES:,} bytes.",
                kind="too_large",
                next=["take a folder in it"],
            )
    return left


def _wanted(where: Ground, folder: str, each: carry.Found) -> bool:
    return S_ISREG(each.stat.st_mode) and not where.protects(where.root / folder / each.path, writing=False)


def _zipped(where: Ground, fd: int, folder: str) -> Iterator[bytes]:
    """Run by threads, step by step. What has gone meanwhile, or cannot be read, is not in it."""
    sink = Sink()
    try:
        with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for each in carry.walk(fd):
                if _wanted(where, folder, each):
                    yield from _packed(packed, sink, each)
        yield sink.taken()
    finally:
        os.close(fd)


def _packed(packed: zipfile.ZipFile, sink: Sink, each: carry.Found) -> Iterator[bytes]:
    try:
        file = os.open(each.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=each.fd)
    except OSError:
        return
    with os.fdopen(file, "rb") as content:
        if not S_ISREG(os.fstat(file).st_mode):
            return
        when = max(time.localtime(each.stat.st_mtime)[:6], FIRST)
        told = zipfile.ZipInfo(names.shown(each.path), when)
        told.external_attr = (each.stat.st_mode & 0xFFFF) << 16
        told.compress_type = zipfile.ZIP_DEFLATED
        with packed.open(told, "w", force_zip64=each.stat.st_size > 1_000_000_000) as out:
            left = each.stat.st_size
            # What grows while it is read is cut where it ended when it was found.
            while left > 0 and (data := content.read(min(CHUNK, left))):
                left -= len(data)
                out.write(data)
                yield sink.taken()
