"""Writing files of the workspace, and listing its folders."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.text import count
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools import atomic, diff, document, folder, outcome
from sylph.tools.workspace import changeable, changes, inside, looks, printable, refusable, reported, shown


class Write(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="File; missing folders are made.")]
    content: Annotated[str, Meta(description="The whole new content.")]


class List(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="Folder.")] = "."
    depth: Annotated[int, Meta(ge=1, le=10, description="Levels to show.")] = 1
    hidden: Annotated[bool, Meta(description="Show names that begin with a dot.")] = False


async def write(args: Write, context: Context) -> Result:
    return await asyncio.to_thread(_write, args, context)


async def foresee_write(args: Write, context: Context) -> Mapping[str, str]:
    path, data, _ = await asyncio.to_thread(_prepare, args, context.workspace)
    return outcome.foresee(context.workspace, path, data)


async def recover_write(_: Write, context: Context) -> Result | None:
    return await asyncio.to_thread(outcome.recover, context)


def _prepare(args: Write, root: Path) -> tuple[Path, bytes, os.stat_result | None]:
    """Where the content goes, how it is to be written there, and what is there now."""
    path = changeable(root, args.path)
    with reported(args.path):
        head, was = b"", atomic.state(path)
        if was:
            document.stat(path, args.path)
            document.refuse_locked(path, args.path)
            head = document.sample(path)
        return path, document.dress(args.content, head), was


def _write(args: Write, context: Context) -> Result:
    path, data, was = _prepare(args, context.workspace)
    with reported(args.path):
        atomic.replace(path, data, was=was, by=context.key)
    said = "Replaced" if was else "Created"
    return Result(text=f"{said} {shown(context.workspace, path)}: {count(len(args.content.splitlines()), 'line')}.")


async def preview_write(args: Write, context: Context) -> str:
    return await asyncio.to_thread(_preview, args, context.workspace)


def _preview(args: Write, root: Path) -> str:
    path = changeable(root, args.path)
    name = shown(root, path)
    with reported(args.path):
        if atomic.state(path) is None:
            return diff.added(name, args.content)
        document.stat(path, args.path)
        if document.is_binary(document.sample(path)):
            return f"{name}: a binary file is replaced by {count(len(args.content.splitlines()), 'line')}"
        return diff.unified(name, document.readable(document.load(path, args.path)), args.content)


def judge_write(args: Write, context: Context) -> Judged:
    """Safe for a new file; overwriting loses something, and dotfiles steer other programs."""
    try:
        path = changeable(context.workspace, args.path)
        with reported(args.path):
            was = atomic.state(path)
    except ToolError as error:
        return refusable(error, context.workspace, args.path)
    name = shown(context.workspace, path)
    if was:
        return changes(f"overwrites {name}", path, risk="caution")
    if any(part.startswith(".") for part in Path(name).parts):
        return changes(f"makes the hidden {name}", path, risk="caution")
    return changes(f"makes {name}", path)


def judge_list(args: List, context: Context) -> Judged:
    return looks(context.workspace, args.path)


async def list_folder(args: List, context: Context) -> Result:
    return await asyncio.to_thread(_list, args, context.workspace)


def _list(args: List, root: Path) -> Result:
    path = inside(root, args.path)
    with reported(args.path):
        if path.is_file():
            raise ToolError(f"{args.path} is a file.", kind="not_a_directory", next=[f"read(path={args.path!r})"])
        tree = folder.tree(path, depth=args.depth, hidden=args.hidden)
    return Result(text=tree or f"[{printable(args.path)} is empty]")


WRITE = Tool(
    name="write",
    description="Create a file or replace all of its content. To change part of a file use edit.",
    args=Write,
    run=write,
    effect="write",
    recourse="by_content",
    preview=preview_write,
    judge=judge_write,
    foresee=foresee_write,
    recover=recover_write,
)
LIST = Tool(
    name="list",
    description="List a folder; folders end in /.",
    args=List,
    run=list_folder,
    effect="read",
    recourse="pure",
    judge=judge_list,
)
