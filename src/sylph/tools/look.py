"""Looking at the workspace without reading it: what is there, and how it hangs together."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG
from typing import Annotated

from msgspec import Meta, Struct, field

from sylph.core.errors import ToolError
from sylph.core.text import count
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools.searcher import Searcher
from sylph.tools.workspace import entry, folder, inside, looks, printable

MOST = 1_000


class Tree(Args, frozen=True, kw_only=True):
    path: str = "."
    depth: Annotated[int, Meta(ge=1, le=20)] = 3
    ignored: Annotated[bool, Meta(description="Also what ignore files leave out.")] = False


class Exists(Args, frozen=True, kw_only=True):
    paths: Annotated[tuple[str, ...], Meta(min_length=1, max_length=100)]


class Node(Struct):
    """A folder: its folders and files by name, and how many files are below it."""

    folders: dict[str, "Node"] = field(default_factory=dict[str, "Node"])
    files: list[str] = field(default_factory=list[str])
    total: int = 0

    def add(self, parts: list[str]) -> None:
        node = self
        node.total += 1
        for name in parts[:-1]:
            node = node.folders.setdefault(name, Node())
            node.total += 1
        node.files.append(parts[-1])


def tree(searcher: Searcher) -> Tool:
    async def run(args: Tree, context: Context) -> Result:
        place = folder(context.workspace, args.path)
        paths = await searcher.files(place, lambda _: True, ignored=args.ignored)
        text = await asyncio.to_thread(_drawn, paths, args.depth)
        return Result(text="\n".join([text or f"[no files in {printable(args.path)}]", *filter(None, [searcher.note])]))

    return Tool(
        name="tree",
        description="Show the folders and files below a folder, ignored ones not.",
        args=Tree,
        run=run,
        effect="read",
        recourse="pure",
        judge=lambda args, context: looks(context.workspace, args.path),
    )


def _drawn(paths: list[str], depth: int) -> str:
    """The tree as far as it fits: one level less, until it does."""
    root = Node()
    for path in sorted(paths):
        root.add(path.split("/"))
    for levels in range(depth, 0, -1):
        lines = list(_lines(root, levels, ""))
        if len(lines) <= MOST or levels == 1:
            left = (
                [f"[{count(len(lines) - MOST, 'more entry').replace('entrys', 'entries')}]"]
                if len(lines) > MOST
                else []
            )
            less = [f"[only {count(levels, 'level')}: deeper would not fit]"] if levels < depth else []
            return "\n".join([*lines[:MOST], *left, *less])
    return ""


def _lines(node: Node, depth: int, indent: str) -> Iterator[str]:
    for name, inner in node.folders.items():
        note = f"  ({count(inner.total, 'file')})" if depth == 1 else ""
        yield f"{indent}{printable(name)}/{note}"
        if depth > 1:
            yield from _lines(inner, depth - 1, indent + "  ")
    yield from (indent + printable(name) for name in node.files)


async def exists(args: Exists, context: Context) -> Result:
    return Result(text="\n".join(_told(name, context.workspace) for name in args.paths))


def _told(name: str, root: Path) -> str:
    try:
        path = root if name in (".", "./") else entry(root, name, git=True)
        inside(root, name)
        found = path.lstat()
    except ToolError as error:
        return f"{printable(name)}: {error}"
    except OSError:
        return f"{printable(name)}: no"
    changed = datetime.fromtimestamp(found.st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"{printable(name)}: {_kind(path, found)}, mode {S_IMODE(found.st_mode):o}, changed {changed}"


def _kind(path: Path, found: os.stat_result) -> str:
    if S_ISLNK(found.st_mode):
        leads = "" if path.exists() else ", which does not exist"
        return f"link to {printable(str(path.readlink()))}{leads}"
    if S_ISDIR(found.st_mode):
        return "folder"
    return f"file, {found.st_size:,} bytes" if S_ISREG(found.st_mode) else "device, pipe or socket"


def judge_exists(args: Exists, context: Context) -> Judged:
    return looks(context.workspace, *args.paths)


EXISTS = Tool(
    name="exists",
    description="Tell of each path whether it exists, and what it is.",
    args=Exists,
    run=exists,
    effect="read",
    recourse="pure",
    judge=judge_exists,
)
