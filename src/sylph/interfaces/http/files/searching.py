"""Searching a workspace by name or by content, with what the agent searches with."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Query
from msgspec import Struct

from sylph.core.errors import ToolError, UserError
from sylph.core.permission.glob_pattern import glob_matcher
from sylph.core.permission.protected_path import build_read_guard, suspect_name_pattern
from sylph.core.text.formatting import truncate_middle
from sylph.interfaces.http.files.filesystem import path_names
from sylph.interfaces.http.files.filesystem.location import fd_path, open_location
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.state.server_state import ServerState
from sylph.tools.search.python_searcher import PythonSearcher
from sylph.tools.search.ripgrep import RipgrepSearcher, find_ripgrep
from sylph.tools.search.searcher import FileQuery as Wanted
from sylph.tools.search.searcher import FileSearcher

routes = RouteGroup("files")
SEARCH_TIMEOUT = 20.0
MAX_LINE_WIDTH = 400
MAX_HITS = 5_000
GLOB = frozenset("*?[{")


class FileSearchHit(Struct, frozen=True, kw_only=True):
    """A file whose name fits, or a line that does: then with its number."""

    path: str
    line: int | None = None
    text: str | None = None


class FileSearchView(Struct, frozen=True, kw_only=True):
    items: list[FileSearchHit]
    cut: bool = False
    """Whether there are more than were asked for."""
    note: str | None = None


@routes.get(
    "/workspaces/{workspace}/files/search",
    scope="read",
    gives=FileSearchView,
    errors=(404, 408, 409),
    answer=FileSearchView(items=[FileSearchHit(path="src/main.py", line=3, text="def main():")]),
)
async def search_files(
    server: ServerState,
    workspace: str,
    q: Annotated[str, Query(min_length=1, max_length=1000, description="A piece of a name or a glob; or a regex.")],
    by: Annotated[Literal["name", "content"], Query(description="What is looked at.")] = "name",
    path: path_names.FolderPath = "",
    *,
    ignore_case: Annotated[bool, Query(description="For content; names are always found in either case.")] = False,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 200,
) -> FileSearchView:
    """Search a folder. What git ignores is not looked at, and what may hold secrets is not looked into."""
    if "\0" in q:
        raise UserError("A search cannot hold a NUL byte.", kind="bad_parameter", next=["search for something else"])
    where = await find_workspace(server, workspace)
    fd, folder = await asyncio.to_thread(_open_folder, where, path)
    program = find_ripgrep(server.app.config.environ)
    searcher: FileSearcher = RipgrepSearcher(program) if program else PythonSearcher()
    try:
        async with asyncio.timeout(SEARCH_TIMEOUT):
            if by == "name":
                items = await _search_names(searcher, fd_path(fd, folder), q)
            else:
                items = await _search_lines(searcher, where, folder, fd, q, ignore_case=ignore_case)
    except ToolError as error:
        raise UserError(str(error), kind=error.trouble.kind, next=["mend the pattern: a regular expression"]) from error
    except TimeoutError as error:
        raise UserError("The search took too long.", kind="too_slow", next=["search a smaller folder"]) from error
    finally:
        os.close(fd)
    told = [_in_workspace(where, folder, each) for each in items[:limit]]
    return FileSearchView(items=told, cut=len(items) > limit, note=searcher.note or None)


def _open_folder(where: WorkspaceRoot, given: str) -> tuple[int, Path]:
    with open_location(where, given) as found:
        return found.open_folder(), found.path


async def _search_names(searcher: FileSearcher, folder: Path, wanted: str) -> list[FileSearchHit]:
    fits = glob_matcher(wanted) if GLOB & set(wanted) else None
    low = wanted.casefold()

    def fitting(path: str) -> bool:
        return fits(path) if fits else low in path.casefold()

    return [FileSearchHit(path=path) for path in sorted(await searcher.list_files(folder, fitting, ignored=False))]


async def _search_lines(
    searcher: FileSearcher, where: WorkspaceRoot, folder: Path, fd: int, pattern: str, *, ignore_case: bool
) -> list[FileSearchHit]:
    query = Wanted(
        pattern=pattern,
        folder=fd_path(fd, folder),
        ignore_case=ignore_case,
        is_withheld=build_read_guard(folder, where.path_policy),
        withheld_pattern=suspect_name_pattern(folder, where.path_policy),
    )
    hits = sorted(await searcher.find_matches(query, most=MAX_HITS), key=lambda hit: (hit.path, hit.line))
    return [
        FileSearchHit(path=hit.path, line=hit.line, text=truncate_middle(hit.text, MAX_LINE_WIDTH))
        for hit in hits
        if hit.match
    ]


def _in_workspace(where: WorkspaceRoot, folder: Path, hit: FileSearchHit) -> FileSearchHit:
    return FileSearchHit(path=where.encode_path(folder / hit.path), line=hit.line, text=hit.text)
