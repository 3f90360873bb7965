"""What a server gave, as text that a model can read."""

import asyncio
from typing import NamedTuple

from sylph.core.errors import ToolError
from sylph.net.page_fetch import FetchedPage
from sylph.tools.web import content_type
from sylph.tools.web.charset import decode_body
from sylph.tools.web.readability.main_content import extract_readable
from sylph.tools.web.settings import FetchFormat
from sylph.tools.web.untrusted_text import mark_untrusted, one_line, strip_invisible

# More of a page than this is not taken apart.
MARKUP = 4_000_000
# A little under what the executor shows, with room for our own lines.
ROOM = 47_000


class PageText(NamedTuple):
    """What was read, and the line that says of what."""

    head: str
    body: str
    notes: tuple[str, ...] = ()


async def extract_text(page: FetchedPage, form: FetchFormat, *, whole: bool) -> PageText:
    """What a page says, in the form that is wished for. Raises ToolError where it says nothing in words."""
    header = page.headers.get("content-type", "")
    media = content_type.detect_media_type(header, page.body)
    head = source_line(page, media)
    kind = content_type.kind_of(media)
    if form == "json":
        return PageText(head=head, body=_refuse_cut(page, content_type.format_json(page.body, header, must=True)))
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
        return PageText(
            head=head, body=strip_invisible(content_type.format_json(page.body, header, must=False)), notes=notes
        )
    text = await asyncio.to_thread(decode_body, page.body, content_type.declared_charset(header))
    if kind != "html" or form == "html":
        return PageText(head=head, body=strip_invisible(text), notes=notes)
    return await asyncio.to_thread(_read_html, text, page, head, links=form != "text", whole=whole)


def _read_html(source: str, page: FetchedPage, head: str, *, links: bool, whole: bool) -> PageText:
    found = extract_readable(source[:MARKUP], page.url, links=links, whole=whole)
    notes: list[str] = []
    if page.cut or len(source) > MARKUP:
        notes.append("only the first part of it was read: it is very long")
    if not found.whole:
        notes.append("menus and the like are left out; whole=true shows all")
    if len(found.text) < 200 and len(source) > 2000:
        notes.append("there is hardly any text: the page may need scripts, which browse runs")
    text = strip_invisible(found.text)
    title = one_line(found.title, 300)
    if title and not text.startswith(f"# {title}"):
        text = f"Title: {title}\n\n{text}"
    return PageText(head=head, body=text, notes=tuple(notes))


def source_line(page: FetchedPage, media: str) -> str:
    way = f" (sent on from {page.hops[0]})" if page.hops else ""
    return f"{page.url}{way} · {media} · {len(page.body):,} bytes"


def _refuse_cut(page: FetchedPage, text: str) -> str:
    if page.cut:
        raise ToolError(f"{page.url} is longer than {len(page.body):,} bytes.", kind="too_large")
    return text


def select_part(text: PageText, offset: int, limit: int) -> str:
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
    return mark_untrusted(head, piece.strip("\n") or "(nothing to read)")
