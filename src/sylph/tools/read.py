"""Reading a file as what it is: text, an image, the pages of a PDF, the cells of a notebook."""

import asyncio
import difflib
import io
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.tool import Args, Context, Judged, Picture, Result, Tool
from sylph.tools import atomic, document, images, notebook, pdf
from sylph.tools.lines import LINES, Part, header, part
from sylph.tools.workspace import inside, looks, reported, shown

KEPT = "output:"
PDF, NOTEBOOK = b"%PDF-", ".ipynb"


class Read(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="File, or output:CALL for the whole output of an earlier call.")]
    offset: Annotated[int, Meta(ge=1, description="First line, or page of a PDF.")] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES, description="Lines or pages at most.")] = LINES


async def read(args: Read, context: Context) -> Result:
    if args.path.startswith(KEPT):
        return await _read_kept(args, context)
    path = inside(context.workspace, args.path)
    head = await asyncio.to_thread(_head, args, path, context.workspace)
    if head.startswith(PDF):
        return await pdf.read(path, args.path, context, offset=args.offset, limit=args.limit)
    if media := images.media_of(head):
        return await asyncio.to_thread(_picture, args, path, media)
    return await asyncio.to_thread(_text, args, path)


async def _read_kept(args: Read, context: Context) -> Result:
    call = args.path.removeprefix(KEPT)
    whole = await context.whole(call)
    if whole is None:
        raise ToolError(f"No output of a call {call} is kept.", kind="not_found")
    return _told(args, _part(io.BytesIO(whole.encode()), args))


def _head(args: Read, path: Path, root: Path) -> bytes:
    with reported(args.path):
        if atomic.state(path) is None:
            raise _missing(args.path, path, root)
        document.stat(path, args.path)
        return document.sample(path)


def _text(args: Read, path: Path) -> Result:
    with reported(args.path), path.open("rb") as file:
        document.refuse_binary(file.read(document.SAMPLE), args.path)
        file.seek(0)
        if path.suffix == NOTEBOOK and (cells := notebook.text(file.read(document.LARGEST))) is not None:
            return _told(args, _part(io.BytesIO(cells.encode("utf-8", "replace")), args))
        file.seek(0)
        return _told(args, _part(file, args))


def _picture(args: Read, path: Path, media: str) -> Result:
    with reported(args.path):
        size = path.stat().st_size
        if size > images.LARGEST:
            raise ToolError(
                f"{args.path} is an image of {size:,} bytes; {images.LARGEST:,} can be shown.",
                kind="too_large",
                next=["Make a smaller copy with a shell command (magick, sips, ffmpeg, Pillow), and read that."],
            )
        data = path.read_bytes()
    if not images.is_whole(data, media):
        raise ToolError(f"{args.path} is a damaged {media}: its end is missing.", kind="damaged_file")
    picture = Picture(data=data, media=media, name=args.path)
    return Result(text=f"[{args.path}: {media}, {images.measure(data, media)}{len(data):,} bytes]", images=(picture,))


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


def judge(args: Read, context: Context) -> Judged:
    return Judged("read", "safe") if args.path.startswith(KEPT) else looks(context.workspace, args.path)


READ = Tool(
    name="read",
    description="Read a file: text, image, PDF or notebook.",
    args=Read,
    run=read,
    effect="read",
    recourse="pure",
    judge=judge,
)
