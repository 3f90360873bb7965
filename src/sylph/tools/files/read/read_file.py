"""Reading a file as what it is: text, an image, the pages of a PDF, the cells of a notebook."""

import asyncio
import difflib
import io
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.tool import CallAssessment, ImageData, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files import atomic_write, text_file
from sylph.tools.files.read import images, notebook, pdf
from sylph.tools.files.read.line_range import LINES, LineRange, range_header, read_range
from sylph.tools.files.workspace_paths import assess_read, display_path, resolve_inside, translate_os_errors

OUTPUT_PREFIX = "output:"
PDF, NOTEBOOK = b"%PDF-", ".ipynb"


class ReadArgs(ToolArgs, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="File, or output:CALL for the whole output of an earlier call.")]
    offset: Annotated[int, Meta(ge=1, description="First line, or page of a PDF.")] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES, description="Lines or pages at most.")] = LINES


async def read_file(args: ReadArgs, context: ToolContext) -> ToolResult:
    if args.path.startswith(OUTPUT_PREFIX):
        return await _read_call_output(args, context)
    path = resolve_inside(context.workspace, args.path)
    head = await asyncio.to_thread(_read_head, args, path, context.workspace)
    if head.startswith(PDF):
        return await pdf.read_pdf(path, args.path, context, offset=args.offset, limit=args.limit)
    if media := images.media_of(head):
        return await asyncio.to_thread(_read_image, args, path, media)
    return await asyncio.to_thread(_read_text, args, path)


async def _read_call_output(args: ReadArgs, context: ToolContext) -> ToolResult:
    call = args.path.removeprefix(OUTPUT_PREFIX)
    whole = await context.full_output(call)
    if whole is None:
        raise ToolError(f"No output of a call {call} is kept.", kind="not_found")
    return _part_result(args, _read_part(io.BytesIO(whole.encode()), args))


def _read_head(args: ReadArgs, path: Path, root: Path) -> bytes:
    with translate_os_errors(args.path):
        if atomic_write.stat_or_none(path) is None:
            raise _not_found_error(args.path, path, root)
        text_file.stat_file(path, args.path)
        return text_file.read_sample(path)


def _read_text(args: ReadArgs, path: Path) -> ToolResult:
    with translate_os_errors(args.path), path.open("rb") as file:
        text_file.refuse_binary(file.read(text_file.SAMPLE), args.path)
        file.seek(0)
        if path.suffix == NOTEBOOK and (cells := notebook.render_notebook(file.read(text_file.LARGEST))) is not None:
            return _part_result(args, _read_part(io.BytesIO(cells.encode("utf-8", "replace")), args))
        file.seek(0)
        return _part_result(args, _read_part(file, args))


def _read_image(args: ReadArgs, path: Path, media: str) -> ToolResult:
    with translate_os_errors(args.path):
        size = path.stat().st_size
        if size > images.LARGEST:
            raise ToolError(
                f"{args.path} is an image of {size:,} bytes; {images.LARGEST:,} can be shown.",
                kind="too_large",
                next=["Make a smaller copy with a shell command (magick, sips, ffmpeg, Pillow), and read that."],
            )
        data = path.read_bytes()
    if not images.is_complete(data, media):
        raise ToolError(f"{args.path} is a damaged {media}: its end is missing.", kind="damaged_file")
    picture = ImageData(data=data, media=media, name=args.path)
    return ToolResult(
        text=f"[{args.path}: {media}, {images.describe_size(data, media)}{len(data):,} bytes]", images=(picture,)
    )


def _read_part(file: BinaryIO, args: ReadArgs) -> LineRange:
    return read_range(file, offset=args.offset, limit=args.limit)


def _part_result(args: ReadArgs, found: LineRange) -> ToolResult:
    if not found.last:
        return ToolResult(text=f"[{args.path} is empty]")
    if found.last < found.first:
        raise ToolError(f"{args.path} ends at line {found.last}.", kind="out_of_range", details={"lines": found.last})
    return ToolResult(text=range_header(found) + found.text)


def _not_found_error(name: str, path: Path, root: Path) -> ToolError:
    """Not found, with the names that come close."""
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=3, cutoff=0.5)
    hints = [f"Did you mean {display_path(root, path.with_name(other))}?" for other in close]
    return ToolError(f"{name} does not exist.", kind="not_found", next=hints or ["Look for it with find."])


def judge_read(args: ReadArgs, context: ToolContext) -> CallAssessment:
    return (
        CallAssessment("read", "safe")
        if args.path.startswith(OUTPUT_PREFIX)
        else assess_read(context.workspace, args.path)
    )


READ = Tool(
    name="read",
    description="Read a file: text, image, PDF or notebook.",
    args=ReadArgs,
    run=read_file,
    effect="read",
    recourse="pure",
    judge=judge_read,
)
