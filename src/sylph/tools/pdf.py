"""The text of a PDF, page by page. It is taken out by a program of its own: a bad file can cost no more than that."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sylph.core.errors import ToolError
from sylph.core.run import Lost
from sylph.core.tool import Context, Result
from sylph.tools import reader
from sylph.tools.lines import BYTES

PROGRAM = str(Path(__file__).with_name("pdf_pages.py"))
SECONDS = 60.0
MEMORY = 1_000_000_000


class Pages(msgspec.Struct):
    """Some pages of `total`, or what is wrong with the file."""

    total: int = 0
    pages: list[str] = []
    error: str = ""


async def read(path: Path, name: str, context: Context, *, offset: int, limit: int) -> Result:
    """Pages from `offset` on: at most `limit`, and no more than fits an answer."""
    argv = (sys.executable, "-I", PROGRAM, str(path), str(offset), str(limit), str(BYTES))
    found = await extract(argv, path, name, context)
    if offset > found.total:
        raise ToolError(f"{name} ends at page {found.total}.", kind="out_of_range", details={"pages": found.total})
    return Result(text=_told(found, offset))


async def extract(argv: Sequence[str], path: Path, name: str, context: Context) -> Pages:
    """What the program of `argv` finds, run beside `path`. Raises ToolError where it finds nothing it can read."""
    ran = await reader.look(argv, path, context, seconds=SECONDS, memory=MEMORY)
    if isinstance(ran, Lost) or ran.why or ran.exit:
        raise ToolError(
            f"The text of {name} could not be taken out: {_why(ran.why if not isinstance(ran, Lost) else 'lost')}.",
            kind="unreadable",
            next=["Ask for fewer pages with offset and limit.", "Try a shell command such as pdftotext."],
        )
    found = msgspec.json.decode(ran.head + ran.tail, type=Pages)
    if found.error:
        raise ToolError(f"{name}: {found.error}", kind="unreadable", next=["Try a shell command such as pdftotext."])
    return found


def _told(found: Pages, offset: int) -> str:
    last = offset + len(found.pages) - 1
    more = f"; go on with offset={last + 1}" if last < found.total else ""
    texts = [f"[page {number}]\n{text.strip()}\n" for number, text in enumerate(found.pages, offset)]
    bare = "" if any(text.strip() for text in found.pages) else "[no text on these pages: they may be scanned images]\n"
    return f"[PDF, pages {offset}-{last} of {found.total}{more}]\n{''.join(texts)}{bare}"


def _why(why: str) -> str:
    return {"time": "it took too long", "memory": "it takes too much memory", "lost": "its program was lost"}.get(
        why, "its program failed"
    )
