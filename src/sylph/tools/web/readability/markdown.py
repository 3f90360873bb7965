"""A tree of HTML as Markdown, for a reader who wants words, structure and links."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import urljoin

from msgspec import Struct, field

from sylph.tools.web.readability.html_parser import APART, HtmlNode, word_set

SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")
AROUND = re.compile(r" *\n *")
INVISIBLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])|font-size\s*:\s*0(?![.\d])", re.I
)
TICKS = re.compile("`+")
LANGUAGE = re.compile(r"(?:language|lang|highlight-source)-([\w+#.-]+)")
# Nothing to read in there.
MUTE = word_set(
    "script style noscript template svg math canvas iframe object embed audio video select datalist textarea "
    "title link meta base input button map noembed noframes"
)
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
LONGEST_LINK = 500
CELLS = 4000


class MarkdownStyle(Struct, frozen=True):
    """How to write: where relative links count from, whether links are kept, and which elements are left out."""

    base: str = ""
    links: bool = True
    without: frozenset[int] = field(default_factory=frozenset[int])


def render_markdown(node: HtmlNode, style: MarkdownStyle) -> str:
    return "\n\n".join(_render_blocks(node, style))


def is_hidden(node: HtmlNode) -> bool:
    """Whether a person would not see it: words meant only for programs are not for ours either."""
    attrs = node.attrs
    if node.tag in MUTE or "hidden" in attrs or attrs.get("aria-hidden", "").lower() == "true":
        return True
    return "style" in attrs and INVISIBLE.search(attrs["style"]) is not None


def _render_blocks(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    """The parts of an element, each to be set apart from the next."""
    found: list[str] = []
    run: list[str] = []

    def flush() -> None:
        if text := _tidy_line("".join(run)):
            found.append(text)
        run.clear()

    for child in node.children:
        if isinstance(child, str):
            run.append(SPACE.sub(" ", child))
        elif is_hidden(child) or id(child) in style.without:
            continue
        elif child.tag in APART or child.blocks:
            flush()
            found += _render_block(child, style)
        else:
            run.append(_render_inline(child, style))
    flush()
    return found


def _render_block(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    return WRITERS.get(node.tag, _render_blocks)(node, style)


def _render_heading(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    title = _inline_text(node, style).replace("\n", " ")
    return [f"{'#' * int(node.tag[1])} {title}"] if title else []


def _render_quote(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    text = "\n\n".join(_render_blocks(node, style))
    return [_prefix_lines(text, "> ", "> ")] if text else []


def _render_term(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    text = _inline_text(node, style)
    return [f"**{text}**"] if text else []


def _render_rule(node: HtmlNode, style: MarkdownStyle) -> list[str]:  # noqa: ARG001 - as all that write a block
    return ["---"]


def _render_inline(node: HtmlNode, style: MarkdownStyle) -> str:
    match node.tag:
        case "br":
            return "\n"
        case "img":
            return _render_image(node, style)
        case "code" | "kbd" | "samp" | "tt":
            text = SPACE.sub(" ", node.text())
            return f"`{text}`" if text.strip() and "`" not in text else text
        case "a":
            return _render_link(node, style)
        case _:
            return _render_emphasis(node, style)


def _render_emphasis(node: HtmlNode, style: MarkdownStyle) -> str:
    said = "".join(_inline_pieces(node, style))
    mark = MARKS.get(node.tag, "") if style.links else ""
    bare = said.strip()
    return said.replace(bare, f"{mark}{bare}{mark}", 1) if mark and bare and "\n" not in bare else said


def _inline_pieces(node: HtmlNode, style: MarkdownStyle) -> Iterable[str]:
    for child in node.children:
        if isinstance(child, str):
            yield SPACE.sub(" ", child)
        elif not is_hidden(child) and id(child) not in style.without:
            yield _render_inline(child, style)


def _render_link(node: HtmlNode, style: MarkdownStyle) -> str:
    words = "".join(_inline_pieces(node, style))
    bare = _tidy_line(words).replace("\n", " ")
    goal = _absolute_link(node.attrs.get("href", ""), style)
    if not goal or not style.links or not bare:
        return words
    return f"{' ' if words[:1] == ' ' else ''}[{bare}]({goal}){' ' if words[-1:] == ' ' else ''}"


def _render_image(node: HtmlNode, style: MarkdownStyle) -> str:
    words = SPACE.sub(" ", node.attrs.get("alt", "")).strip()
    if not words:
        return ""
    goal = _absolute_link(node.attrs.get("src", ""), style)
    return f"![{words}]({goal})" if goal and style.links else f"[picture: {words}]"


def _absolute_link(place: str, style: MarkdownStyle) -> str:
    """An absolute link; none where it only jumps within the page, runs a script or is too long to be of use."""
    place = place.strip()
    if not place or place.startswith("#"):
        return ""
    try:
        goal = urljoin(style.base, place)
    except ValueError:
        return ""
    fit = goal.startswith(("http://", "https://", "mailto:")) and len(goal) <= LONGEST_LINK
    return SPACE.sub("%20", goal).replace(")", "%29") if fit else ""


def _inline_text(node: HtmlNode, style: MarkdownStyle) -> str:
    return _tidy_line("".join(_inline_pieces(node, style)))


def _tidy_line(text: str) -> str:
    return AROUND.sub("\n", re.sub(r" {2,}", " ", text)).strip()


def _render_list(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    items: list[str] = []
    start = node.attrs.get("start", "1")
    number = int(start) if start.isdecimal() and len(start) < 6 else 1
    for child in node.children:
        if isinstance(child, str) or is_hidden(child) or id(child) in style.without:
            continue
        text = "\n".join(_render_blocks(child, style)) if child.tag == "li" else "\n".join(_render_block(child, style))
        if not text:
            continue
        mark = f"{number}. " if node.tag == "ol" else "- "
        number += 1
        items.append(_prefix_lines(text, mark, " " * len(mark)))
    return ["\n".join(items)] if items else []


def _prefix_lines(text: str, first: str, rest: str) -> str:
    head, *tail = text.split("\n")
    return "\n".join([first + head, *((rest + line).rstrip() for line in tail)])


def _render_code(node: HtmlNode, style: MarkdownStyle) -> list[str]:  # noqa: ARG001 - as all that write a block
    text = node.text().strip("\n").rstrip()
    if not text:
        return []
    named = (node.attrs.get("class", ""), *(inner.attrs.get("class", "") for inner in node.walk()))
    language = next((found.group(1) for name in named if (found := LANGUAGE.search(name))), "")
    longest = max((len(run) for run in TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}\n{text}\n{fence}"]


def _render_table(node: HtmlNode, style: MarkdownStyle) -> list[str]:
    if node.tables:  # Tables in tables are only there for the layout.
        return _render_blocks(node, style)
    rows = [
        [
            cell
            for cell in row.children
            if isinstance(cell, HtmlNode) and cell.tag in ("td", "th") and not is_hidden(cell)
        ]
        for row in node.walk()
        if row.tag == "tr"
    ]
    rows = [row for row in rows if row]
    width = max((len(row) for row in rows), default=0)
    if width < 2 or width * len(rows) > CELLS:
        return _render_blocks(node, style)
    lines = [[_render_cell(cell, style) for cell in row] + [""] * (width - len(row)) for row in rows]
    drawn = ["| " + " | ".join(line) + " |" for line in lines if any(line)]
    if not drawn:
        return []
    caption = [
        _inline_text(inner, style) for inner in node.children if isinstance(inner, HtmlNode) and inner.tag == "caption"
    ]
    return [*filter(None, caption), "\n".join([drawn[0], "|" + " --- |" * width, *drawn[1:]])]


def _render_cell(cell: HtmlNode, style: MarkdownStyle) -> str:
    return " ".join(_render_blocks(cell, style)).replace("\n", " ").replace("|", "\\|")


WRITERS: dict[str, Callable[[HtmlNode, MarkdownStyle], list[str]]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _render_heading),
    **dict.fromkeys(("ul", "ol", "menu", "dir"), _render_list),
    "pre": _render_code,
    "blockquote": _render_quote,
    "table": _render_table,
    "dt": _render_term,
    "hr": _render_rule,
}
