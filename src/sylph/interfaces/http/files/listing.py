"""A folder, page by page. Only what is on the page is looked at closely: a hundred thousand names stay fast."""

import asyncio
import base64
import binascii
import heapq
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import Annotated

from fastapi import Query
from msgspec import Struct
from msgspec.structs import replace

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import path_names
from sylph.interfaces.http.files.filesystem.entry_kind import EntryKind, entry_kind
from sylph.interfaces.http.files.filesystem.location import open_location
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("files")
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=2000, description="Where to go on: the `next` of the page before.")]
GIT_TIMEOUT = 5.0
SortKey = tuple[bool, bytes]


class FileEntryView(Struct, frozen=True, kw_only=True):
    """Something in a folder. `path` is to be given back as it is; `name` is for people."""

    name: str
    path: str
    kind: EntryKind
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
    to_kind: EntryKind | None = None


EXAMPLE = FileEntryView(name="main.py", path="src/main.py", kind="file", size=1204, modified=1_762_000_000_000)


@routes.get(
    "/workspaces/{workspace}/files",
    scope="read",
    gives=ListPage[FileEntryView],
    errors=(404, 409),
    answer=ListPage(items=[EXAMPLE]),
)
async def list_files(
    server: ServerState,
    workspace: str,
    path: path_names.FolderPath = "",
    *,
    limit: Limit = 200,
    cursor: Cursor = "",
    hidden: Annotated[bool, Query(description="Whether names that begin with a dot are told.")] = True,
) -> ListPage[FileEntryView]:
    """List a folder: folders first, then by name."""
    where = await find_workspace(server, workspace)
    page, folder = await asyncio.to_thread(_list_page, where, path, _decode_cursor(cursor), limit=limit, hidden=hidden)
    left_out = await _git_ignored(folder, page.items, server)
    items = [_mark_ignored(each) if each.path in left_out else each for each in page.items]
    return ListPage(items=items, next=page.next)


def _list_page(
    where: WorkspaceRoot, path: str, after: SortKey | None, *, limit: int, hidden: bool
) -> tuple[ListPage[FileEntryView], Path]:
    with open_location(where, path) as found:
        fd = found.open_folder()
        try:
            with os.scandir(fd) as entries:
                keys = _page_keys(entries, after, hidden=hidden)
                first = heapq.nsmallest(limit + 1, keys)
            items = [
                each for _, name in first[:limit] if (each := describe_entry(where, found.path, fd, os.fsdecode(name)))
            ]
        finally:
            os.close(fd)
    following = _encode_cursor(first[limit - 1]) if len(first) > limit else None
    return ListPage(items=items, next=following), found.path


def _page_keys(entries: Iterator[os.DirEntry[str]], after: SortKey | None, *, hidden: bool) -> Iterator[SortKey]:
    for entry in entries:
        if hidden or not entry.name.startswith("."):
            key = (not entry.is_dir(follow_symlinks=False), os.fsencode(entry.name))
            if after is None or key > after:
                yield key


def describe_entry(where: WorkspaceRoot, folder: Path, fd: int, name: str) -> FileEntryView | None:
    """None for what has gone meanwhile."""
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    path = folder / name
    to, to_kind = _link_target(where, path) if S_ISLNK(found.st_mode) else (None, None)
    return FileEntryView(
        name=path_names.display_name(name),
        path=where.encode_path(path),
        kind=entry_kind(found),
        size=found.st_size if S_ISREG(found.st_mode) else 0,
        modified=found.st_mtime_ns // 1_000_000,
        hidden=name.startswith("."),
        protected=bool(where.protection_reason(path, writing=False)),
        to=to,
        to_kind=to_kind,
    )


def describe_new_entry(where: WorkspaceRoot, path: Path, folder: int, name: str) -> FileEntryView:
    """What was just made."""
    found = describe_entry(where, path.parent, folder, name)
    if found is None:
        raise UserError(
            f"{where.display_path(path)} has gone again already.", kind="not_found", next=["list the folder"]
        )
    return found


def _link_target(where: WorkspaceRoot, path: Path) -> tuple[str | None, EntryKind | None]:
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(where.root):
        return None, None
    try:
        return where.encode_path(real), entry_kind(real.lstat())
    except OSError:
        return None, None


async def _git_ignored(folder: Path, items: Sequence[FileEntryView], server: ServerState) -> frozenset[str]:
    """Those that git leaves out; none where there is no git, or it has nothing to say."""
    program = shutil.which("git", path=server.app.config.environ.get("PATH"))
    plain = {
        os.fsencode(Path(each.path).name): each.path
        for each in items
        if not each.path.startswith(path_names.BASE64_PREFIX)
    }
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
        async with asyncio.timeout(GIT_TIMEOUT):
            said, _ = await process.communicate(b"\0".join(plain))
    except TimeoutError:
        return frozenset()
    finally:
        if process.returncode is None:
            process.kill()
    return frozenset(plain[each] for each in said.split(b"\0") if each in plain)


def _mark_ignored(entry: FileEntryView) -> FileEntryView:
    return replace(entry, ignored=True)


def _encode_cursor(key: SortKey) -> str:
    return base64.urlsafe_b64encode(b"%d%s" % (key[0], key[1])).decode()


def _decode_cursor(cursor: str) -> SortKey | None:
    if not cursor:
        return None
    try:
        data = base64.b64decode(cursor, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise UserError("The cursor is none of ours.", kind="bad_cursor", next=["begin without one"]) from error
    return data[:1] == b"1", data[1:]
