"""The text of a PDF, page by page. It is taken out by a program of its own: a bad file can cost no more than that."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sylph.core.command_run import LostCommand
from sylph.core.errors import ToolError
from sylph.core.tool import ToolContext, ToolResult
from sylph.tools.files.read import readonly_program
from sylph.tools.files.read.line_range import BYTES

PROGRAM = str(Path(__file__).with_name("pdf_extractor.py"))
SECONDS = 60.0
MEMORY = 1_000_000_000


class PdfPages(msgspec.Struct):
    """Some pages of `total`, or what is wrong with the file."""

    total: int = 0
    pages: list[str] = []
    error: str = ""


async def read_pdf(path: Path, name: str, context: ToolContext, *, offset: int, limit: int) -> ToolResult:
    """Pages from `offset` on: at most `limit`, and no more than fits an answer."""
    argv = (sys.executable, "-I", PROGRAM, str(path), str(offset), str(limit), str(BYTES))
    found = await extract_pages(argv, path, name, context)
    if offset > found.total:
        raise ToolError(f"{name} ends at page {found.total}.", kind="out_of_range", details={"pages": found.total})
    return ToolResult(text=_render_pages(found, offset))


async def extract_pages(argv: Sequence[str], path: Path, name: str, context: ToolContext) -> PdfPages:
    """What the program of `argv` finds, run beside `path`. Raises ToolError where it finds nothing it can read."""
    ran = await readonly_program.run_readonly(argv, path, context, seconds=SECONDS, memory=MEMORY)
    if isinstance(ran, LostCommand) or ran.why or ran.exit:
        why = "lost" if isinstance(ran, LostCommand) else ran.why
        raise ToolError(
            f"The text of {name} could not be taken out: {_failure_reason(why)}.",
            kind="unreadable",
            next=["Ask for fewer pages with offset and limit.", "Try a shell command such as pdftotext."],
        )
    found = msgspec.json.decode(ran.head + ran.tail, type=PdfPages)
    if found.error:
        raise ToolError(f"{name}: {found.error}", kind="unreadable", next=["Try a shell command such as pdftotext."])
    return found


def _render_pages(found: PdfPages, offset: int) -> str:
    last = offset + len(found.pages) - 1
    more = f"; go on with offset={last + 1}" if last < found.total else ""
    texts = [f"[page {number}]\n{text.strip()}\n" for number, text in enumerate(found.pages, offset)]
    bare = "" if any(text.strip() for text in found.pages) else "[no text on these pages: they may be scanned images]\n"
    return f"[PDF, pages {offset}-{last} of {found.total}{more}]\n{''.join(texts)}{bare}"


def _failure_reason(why: str) -> str:
    return {"time": "it took too long", "memory": "it takes too much memory", "lost": "its program was lost"}.get(
        why, "its program failed"
    )
