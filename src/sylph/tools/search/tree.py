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
from sylph.core.text.formatting import count_noun
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files.workspace_paths import assess_read, printable_name, resolve_entry, resolve_folder, resolve_inside
from sylph.tools.search.searcher import FileSearcher

MOST = 1_000


class TreeArgs(ToolArgs, frozen=True, kw_only=True):
    path: str = "."
    depth: Annotated[int, Meta(ge=1, le=20)] = 3
    ignored: Annotated[bool, Meta(description="Also what ignore files leave out.")] = False


class ExistsArgs(ToolArgs, frozen=True, kw_only=True):
    paths: Annotated[tuple[str, ...], Meta(min_length=1, max_length=100)]


class FolderNode(Struct):
    """A folder: its folders and files by name, and how many files are below it."""

    folders: dict[str, "FolderNode"] = field(default_factory=dict[str, "FolderNode"])
    files: list[str] = field(default_factory=list[str])
    total: int = 0

    def add_file(self, parts: list[str]) -> None:
        node = self
        node.total += 1
        for name in parts[:-1]:
            node = node.folders.setdefault(name, FolderNode())
            node.total += 1
        node.files.append(parts[-1])


def build_tree_tool(searcher: FileSearcher) -> Tool:
    async def run(args: TreeArgs, context: ToolContext) -> ToolResult:
        place = resolve_folder(context.workspace, args.path)
        paths = await searcher.list_files(place, lambda _: True, ignored=args.ignored)
        text = await asyncio.to_thread(_render_tree, paths, args.depth)
        return ToolResult(
            text="\n".join([text or f"[no files in {printable_name(args.path)}]", *filter(None, [searcher.note])])
        )

    return Tool(
        name="tree",
        description="Show the folders and files below a folder, ignored ones not.",
        args=TreeArgs,
        run=run,
        effect="read",
        recourse="pure",
        judge=lambda args, context: assess_read(context.workspace, args.path),
    )


def _render_tree(paths: list[str], depth: int) -> str:
    """The tree as far as it fits: one level less, until it does."""
    root = FolderNode()
    for path in sorted(paths):
        root.add_file(path.split("/"))
    for levels in range(depth, 0, -1):
        lines = list(_tree_lines(root, levels, ""))
        if len(lines) <= MOST or levels == 1:
            left = (
                [f"[{count_noun(len(lines) - MOST, 'more entry').replace('entrys', 'entries')}]"]
                if len(lines) > MOST
                else []
            )
            less = [f"[only {count_noun(levels, 'level')}: deeper would not fit]"] if levels < depth else []
            return "\n".join([*lines[:MOST], *left, *less])
    return ""


def _tree_lines(node: FolderNode, depth: int, indent: str) -> Iterator[str]:
    for name, inner in node.folders.items():
        note = f"  ({count_noun(inner.total, 'file')})" if depth == 1 else ""
        yield f"{indent}{printable_name(name)}/{note}"
        if depth > 1:
            yield from _tree_lines(inner, depth - 1, indent + "  ")
    yield from (indent + printable_name(name) for name in node.files)


async def check_paths(args: ExistsArgs, context: ToolContext) -> ToolResult:
    return ToolResult(text="\n".join(_describe_path(name, context.workspace) for name in args.paths))


def _describe_path(name: str, root: Path) -> str:
    try:
        path = root if name in (".", "./") else resolve_entry(root, name, git=True)
        resolve_inside(root, name)
        found = path.lstat()
    except ToolError as error:
        return f"{printable_name(name)}: {error}"
    except OSError:
        return f"{printable_name(name)}: no"
    changed = datetime.fromtimestamp(found.st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"{printable_name(name)}: {_describe_kind(path, found)}, mode {S_IMODE(found.st_mode):o}, changed {changed}"


def _describe_kind(path: Path, found: os.stat_result) -> str:
    if S_ISLNK(found.st_mode):
        leads = "" if path.exists() else ", which does not exist"
        return f"link to {printable_name(str(path.readlink()))}{leads}"
    if S_ISDIR(found.st_mode):
        return "folder"
    return f"file, {found.st_size:,} bytes" if S_ISREG(found.st_mode) else "device, pipe or socket"


def judge_exists(args: ExistsArgs, context: ToolContext) -> CallAssessment:
    return assess_read(context.workspace, *args.paths)


EXISTS = Tool(
    name="exists",
    description="Tell of each path whether it exists, and what it is.",
    args=ExistsArgs,
    run=check_paths,
    effect="read",
    recourse="pure",
    judge=judge_exists,
)
