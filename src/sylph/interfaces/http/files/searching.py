"""Searching a workspace by name or by content, with what the agent searches with."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Query
from msgspec import Struct

from sylph.core.errors import ToolError, UserError
from sylph.core.globs import matcher
from sylph.core.protected import suspects, unread
from sylph.core.text import trim
from sylph.interfaces.http.files import names
from sylph.interfaces.http.files.spot import Ground, anchored, spot
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes
from sylph.tools.ripgrep import Ripgrep, located
from sylph.tools.scan import Scan
from sylph.tools.searcher import Query as Wanted
from sylph.tools.searcher import Searcher

routes = Routes("files")
SECONDS = 20.0
WIDTH = 400
GATHERED = 5_000
GLOB = frozenset("*?[{")


class HitView(Struct, frozen=True, kw_only=True):
    """A file whose name fits, or a line that does: then with its number."""

    path: str
    line: int | None = None
    text: str | None = None


class SearchView(Struct, frozen=True, kw_only=True):
    items: list[HitView]
    cut: bool = False
    """Whether there are more than were asked for."""
    note: str | None = None


@routes.get(
    "/workspaces/{workspace}/files/search",
    scope="read",
    gives=SearchView,
    errors=(404, 408, 409),
    answer=SearchView(items=[HitView(path="src/main.py", line=3, text="def main():")]),
)
async def search(
    house: House,
    workspace: str,
    q: Annotated[str, Query(min_length=1, max_length=1000, description="A piece of a name or a glob; or a regex.")],
    by: Annotated[Literal["name", "content"], Query(description="What is looked at.")] = "name",
    path: names.Where = "",
    *,
    ignore_case: Annotated[bool, Query(description="For content; names are always found in either case.")] = False,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 200,
) -> SearchView:
    """Search a folder. What git ignores is not looked at, and what may hold secrets is not looked into."""
    if "\0" in q:
        raise UserError("A search cannot hold a NUL byte.", kind="bad_parameter", next=["search for something else"])
    where = await ground(house, workspace)
    fd, folder = await asyncio.to_thread(_opened, where, path)
    program = located(house.app.config.environ)
    searcher: Searcher = Ripgrep(program) if program else Scan()
    try:
        async with asyncio.timeout(SECONDS):
            if by == "name":
                items = await _names(searcher, anchored(fd, folder), q)
            else:
                items = await _lines(searcher, where, folder, fd, q, ignore_case=ignore_case)
    except ToolError as error:
        raise UserError(str(error), kind=error.trouble.kind, next=["mend the pattern: a regular expression"]) from error
    except TimeoutError as error:
        raise UserError("The search took too long.", kind="too_slow", next=["search a smaller folder"]) from error
    finally:
        os.close(fd)
    told = [_told(where, folder, each) for each in items[:limit]]
    return SearchView(items=told, cut=len(items) > limit, note=searcher.note or None)


def _opened(where: Ground, given: str) -> tuple[int, Path]:
    with spot(where, given) as found:
        return found.folder(), found.path


async def _names(searcher: Searcher, folder: Path, wanted: str) -> list[HitView]:
    fits = matcher(wanted) if GLOB & set(wanted) else None
    low = wanted.casefold()

    def fitting(path: str) -> bool:
        return fits(path) if fits else low in path.casefold()

    return [HitView(path=path) for path in sorted(await searcher.files(folder, fitting, ignored=False))]


async def _lines(
    searcher: Searcher, where: Ground, folder: Path, fd: int, pattern: str, *, ignore_case: bool
) -> list[HitView]:
    query = Wanted(
        pattern=pattern,
        folder=anchored(fd, folder),
        ignore_case=ignore_case,
        sparing=unread(folder, where.places),
        suspects=suspects(folder, where.places),
    )
    hits = sorted(await searcher.hits(query, most=GATHERED), key=lambda hit: (hit.path, hit.line))
    return [HitView(path=hit.path, line=hit.line, text=trim(hit.text, WIDTH)) for hit in hits if hit.match]


def _told(where: Ground, folder: Path, hit: HitView) -> HitView:
    return HitView(path=where.told(folder / hit.path), line=hit.line, text=hit.text)
