"""What a server gave, as text that a model can read."""

import asyncio
from typing import NamedTuple

from sylph.core.errors import ToolError
from sylph.net.visit import Page
from sylph.tools.web import content
from sylph.tools.web.charset import decode
from sylph.tools.web.origin import clean, marked, one_line
from sylph.tools.web.readable import readable
from sylph.tools.web.setup import Format

# More of a page than this is not taken apart.
MARKUP = 4_000_000
# A little under what the executor shows, with room for our own lines.
ROOM = 47_000


class Text(NamedTuple):
    """What was read, and the line that says of what."""

    head: str
    body: str
    notes: tuple[str, ...] = ()


async def text_of(page: Page, form: Format, *, whole: bool) -> Text:
    """What a page says, in the form that is wished for. Raises ToolError where it says nothing in words."""
    header = page.headers.get("content-type", "")
    media = content.media(header, page.body)
    head = head_of(page, media)
    kind = content.kind_of(media)
    if form == "json":
        return Text(head=head, body=_uncut(page, content.pretty(page.body, header, must=True)))
    if kind not in ("html", "json", "text"):
        raise ToolError(
            f"{page.url} is {media}, which cannot be shown as text.",
            kind="unsupported_type",
            next=[
                "If the content is needed, download it into the workspace with a shell command and look at it there."
            ],
        )
    notes = ("only the first part of it was read: it is very long",) if page.cut else ()
    if kind == "json" and form == "auto":
        return Text(head=head, body=clean(content.pretty(page.body, header, must=False)), notes=notes)
    text = await asyncio.to_thread(decode, page.body, content.charset(header))
    if kind != "html" or form == "html":
        return Text(head=head, body=clean(text), notes=notes)
    return await asyncio.to_thread(_read, text, page, head, links=form != "text", whole=whole)


def _read(source: str, page: Page, head: str, *, links: bool, whole: bool) -> Text:
    found = readable(source[:MARKUP], page.url, links=links, whole=whole)
    notes: list[str] = []
    if page.cut or len(source) > MARKUP:
        notes.append("only the first part of it was read: it is very long")
    if not found.whole:
        notes.append("menus and the like are left out; whole=true shows all")
    if len(found.text) < 200 and len(source) > 2000:
        notes.append("there is hardly any text: the page may need scripts, which browse runs")
    text = clean(found.text)
    title = one_line(found.title, 300)
    if title and not text.startswith(f"# {title}"):
        text = f"Title: {title}\n\n{text}"
    return Text(head=head, body=text, notes=tuple(notes))


def head_of(page: Page, media: str) -> str:
    way = f" (sent on from {page.hops[0]})" if page.hops else ""
    return f"{page.url}{way} · {media} · {len(page.body):,} bytes"


def _uncut(page: Page, text: str) -> str:
    if page.cut:
        raise ToolError(f"{page.url} is longer than {len(page.body):,} bytes.", kind="too_large")
    return text


def part(text: Text, offset: int, limit: int) -> str:
    """The wanted part, up to the end of a line where there is one, and how to go on."""
    total = len(text.body)
    if offset and offset >= total:
        raise ToolError(f"The text ends at {total:,} characters.", kind="out_of_range", details={"characters": total})
    piece = text.body[offset : offset + limit]
    piece = piece.encode("utf-8", "replace")[:ROOM].decode("utf-8", "ignore")
    end = offset + len(piece)
    if end < total and (line := piece.rfind("\n") + 1) > len(piece) // 2:
        piece, end = piece[:line], offset + line
    notes = list(text.notes)
    if offset or end < total:
        more = f"; go on with offset={end}" if end < total else ""
        notes.insert(0, f"characters {offset:,} to {end:,} of {total:,}{more}")
    head = " · ".join([text.head, *notes])
    return marked(head, piece.strip("\n") or "(nothing to read)")
