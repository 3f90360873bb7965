"""A folder, page by page. Only what is on the page is looked at closely: a hundred thousand names stay fast."""

import asyncio
import base64
import binascii
import heapq
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Annotated, Literal

from fastapi import Query
from msgspec import Struct
from msgspec.structs import replace

from sylph.core.errors import UserError
from sylph.interfaces.http.files import names
from sylph.interfaces.http.files.spot import Ground, spot
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes

routes = Routes("files")
Kind = Literal["folder", "file", "link", "other"]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=2000, description="Where to go on: the `next` of the page before.")]
SECONDS = 5.0
Key = tuple[bool, bytes]


class EntryView(Struct, frozen=True, kw_only=True):
    """Something in a folder. `path` is to be given back as it is; `name` is for people."""

    name: str
    path: str
    kind: Kind
    size: int
    modified: int
    """In milliseconds since 1970."""
    hidden: bool = False
    ignored: bool = False
    """Whether git leaves it out."""
    protected: bool = False
    """Nobody reads or writes it over HTTP: it looks like a secret, or belongs to git or Sylph."""
    to: str | None = None
    """Of a link: where in the workspace it leads; missing where it leads out of it, or nowhere."""
    to_kind: Kind | None = None


EXAMPLE = EntryView(name="main.py", path="src/main.py", kind="file", size=1204, modified=1_762_000_000_000)


@routes.get(
    "/workspaces/{workspace}/files",
    scope="read",
    gives=Page[EntryView],
    errors=(404, 409),
    answer=Page(items=[EXAMPLE]),
)
async def list_(
    house: House,
    workspace: str,
    path: names.Where = "",
    *,
    limit: Limit = 200,
    cursor: Cursor = "",
    hidden: Annotated[bool, Query(description="Whether names that begin with a dot are told.")] = True,
) -> Page[EntryView]:
    """List a folder: folders first, then by name."""
    where = await ground(house, workspace)
    page, folder = await asyncio.to_thread(_page, where, path, _key(cursor), limit=limit, hidden=hidden)
    left_out = await _ignored(folder, page.items, house)
    items = [_flagged(each) if each.path in left_out else each for each in page.items]
    return Page(items=items, next=page.next)


def _page(where: Ground, path: str, after: Key | None, *, limit: int, hidden: bool) -> tuple[Page[EntryView], Path]:
    with spot(where, path) as found:
        fd = found.folder()
        try:
            with os.scandir(fd) as entries:
                keys = _wanted(entries, after, hidden=hidden)
                first = heapq.nsmallest(limit + 1, keys)
            items = [each for _, name in first[:limit] if (each := entry_of(where, found.path, fd, os.fsdecode(name)))]
        finally:
            os.close(fd)
    following = _cursor(first[limit - 1]) if len(first) > limit else None
    return Page(items=items, next=following), found.path


def _wanted(entries: Iterator[os.DirEntry[str]], after: Key | None, *, hidden: bool) -> Iterator[Key]:
    for entry in entries:
        if hidden or not entry.name.startswith("."):
            key = (not entry.is_dir(follow_symlinks=False), os.fsencode(entry.name))
            if after is None or key > after:
                yield key


def entry_of(where: Ground, folder: Path, fd: int, name: str) -> EntryView | None:
    """None for what has gone meanwhile."""
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    path = folder / name
    to, to_kind = _led(where, path) if S_ISLNK(found.st_mode) else (None, None)
    return EntryView(
        name=names.shown(name),
        path=where.told(path),
        kind=kind_of(found),
        size=found.st_size if S_ISREG(found.st_mode) else 0,
        modified=found.st_mtime_ns // 1_000_000,
        hidden=name.startswith("."),
        protected=bool(where.protects(path, writing=False)),
        to=to,
        to_kind=to_kind,
    )


def made(where: Ground, path: Path, folder: int, name: str) -> EntryView:
    """What was just made."""
    found = entry_of(where, path.parent, folder, name)
    if found is None:
        raise UserError(f"{where.shown(path)} has gone again already.", kind="not_found", next=["list the folder"])
    return found


def _led(where: Ground, path: Path) -> tuple[str | None, Kind | None]:
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(where.root):
        return None, None
    try:
        return where.told(real), kind_of(real.lstat())
    except OSError:
        return None, None


def kind_of(found: os.stat_result) -> Kind:
    mode = found.st_mode
    return "folder" if S_ISDIR(mode) else "file" if S_ISREG(mode) else "link" if S_ISLNK(mode) else "other"


async def _ignored(folder: Path, items: Sequence[EntryView], house: House) -> frozenset[str]:
    """Those that git leaves out; none where there is no git, or it has nothing to say."""
    program = shutil.which("git", path=house.app.config.environ.get("PATH"))
    plain = {os.fsencode(Path(each.path).name): each.path for each in items if not each.path.startswith(names.MARK)}
    plain.pop(b".git", None)
    if not program or not plain or not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return frozenset()
    settings = ("-c", "core.fsmonitor=false")
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, *settings, "check-ignore", "-z", "--stdin"),
            cwd=folder,
            env={"LC_ALL": "C.UTF-8"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return frozenset()
    try:
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate(b"\0".join(plain))
    except TimeoutError:
        return frozenset()
    finally:
        if process.returncode is None:
            process.kill()
    return frozenset(plain[each] for each in said.split(b"\0") if each in plain)


def _flagged(entry: EntryView) -> EntryView:
    return replace(entry, ignored=True)


def _cursor(key: Key) -> str:
    return base64.urlsafe_b64encode(b"%d%s" % (key[0], key[1])).decode()


def _key(cursor: str) -> Key | None:
    if not cursor:
        return None
    try:
        data = base64.b64decode(cursor, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise UserError("The cursor is none of ours.", kind="bad_cursor", next=["begin without one"]) from error
    return data[:1] == b"1", data[1:]
