"""Reading, writing and listing files of the workspace."""

import asyncio
import difflib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.text import count
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools import atomic, diff, document, folder, outcome
from sylph.tools.lines import LINES, Part, header, part
from sylph.tools.workspace import changeable, inside, printable, reported, shown

KEPT = "output:"


class Read(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="File, or output:CALL for the whole output of an earlier call.")]
    offset: Annotated[int, Meta(ge=1, description="First line.")] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES, description="Lines at most.")] = LINES


class Write(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="File; missing folders are made.")]
    content: Annotated[str, Meta(description="The whole new content.")]


class List(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="Folder.")] = "."
    depth: Annotated[int, Meta(ge=1, le=10, description="Levels to show.")] = 1
    hidden: Annotated[bool, Meta(description="Show names that begin with a dot.")] = False


async def read(args: Read, context: Context) -> Result:
    if not args.path.startswith(KEPT):
        return await asyncio.to_thread(_read_file, args, context.workspace)
    call = args.path.removeprefix(KEPT)
    whole = await context.whole(call)
    if whole is None:
        raise ToolError(f"No output of a call {call} is kept.", kind="not_found")
    return _told(args, _part(io.BytesIO(whole.encode()), args))


def _read_file(args: Read, root: Path) -> Result:
    path = inside(root, args.path)
    with reported(args.path):
        if atomic.state(path) is None:
            raise _missing(args.path, path, root)
        document.stat(path, args.path)
        with path.open("rb") as file:
            document.refuse_binary(file.read(document.SAMPLE), args.path)
            file.seek(0)
            return _told(args, _part(file, args))


def _part(file: BinaryIO, args: Read) -> Part:
    return part(file, offset=args.offset, limit=args.limit)


def _told(args: Read, found: Part) -> Result:
    if not found.last:
        return Result(text=f"[{args.path} is empty]")
    if found.last < found.first:
        raise ToolError(f"{args.path} ends at line {found.last}.", kind="out_of_range", details={"lines": found.last})
    return Result(text=header(found) + found.text)


def _missing(name: str, path: Path, root: Path) -> ToolError:
    """Not found, with the names that come close."""
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=3, cutoff=0.5)
    hints = [f"Did you mean {shown(root, path.with_name(other))}?" for other in close]
    return ToolError(f"{name} does not exist.", kind="not_found", next=hints or ["Look for it with find."])


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
        return Judged("write", "dangerous", str(error))
    name = shown(context.workspace, path)
    if was:
        return Judged("write", "caution", f"overwrites {name}")
    if any(part.startswith(".") for part in Path(name).parts):
        return Judged("write", "caution", f"makes the hidden {name}")
    return Judged("write", "safe", f"makes {name}")


async def list_folder(args: List, context: Context) -> Result:
    return await asyncio.to_thread(_list, args, context.workspace)


def _list(args: List, root: Path) -> Result:
    path = inside(root, args.path)
    with reported(args.path):
        if path.is_file():
            raise ToolError(f"{args.path} is a file.", kind="not_a_directory", next=[f"read(path={args.path!r})"])
        tree = folder.tree(path, depth=args.depth, hidden=args.hidden)
    return Result(text=tree or f"[{printable(args.path)} is empty]")


READ = Tool(
    name="read",
    description="Read a text file, or some of its lines.",
    args=Read,
    run=read,
    effect="read",
    recourse="pure",
)
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
)
