"""A tree of HTML as Markdown, for a reader who wants words, structure and links."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import urljoin

from msgspec import Struct, field

from sylph.tools.web.markup import APART, Node, words

SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")
AROUND = re.compile(r" *\n *")
INVISIBLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])|font-size\s*:\s*0(?![.\d])", re.I
)
TICKS = re.compile("`+")
LANGUAGE = re.compile(r"(?:language|lang|highlight-source)-([\w+#.-]+)")
# Nothing to read in there.
MUTE = words(
    "script style noscript template svg math canvas iframe object embed audio video select datalist textarea "
    "title link meta base input button map noembed noframes"
)
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
LONGEST_LINK = 500
CELLS = 4000


class Style(Struct, frozen=True):
    """How to write: where relative links count from, whether links are kept, and which elements are left out."""

    base: str = ""
    links: bool = True
    without: frozenset[int] = field(default_factory=frozenset[int])


def render(node: Node, style: Style) -> str:
    return "\n\n".join(_blocks(node, style))


def hidden(node: Node) -> bool:
    """Whether a person would not see it: words meant only for programs are not for ours either."""
    attrs = node.attrs
    if node.tag in MUTE or "hidden" in attrs or attrs.get("aria-hidden", "").lower() == "true":
        return True
    return "style" in attrs and INVISIBLE.search(attrs["style"]) is not None


def _blocks(node: Node, style: Style) -> list[str]:
    """The parts of an element, each to be set apart from the next."""
    found: list[str] = []
    run: list[str] = []

    def flush() -> None:
        if text := _line("".join(run)):
            found.append(text)
        run.clear()

    for child in node.children:
        if isinstance(child, str):
            run.append(SPACE.sub(" ", child))
        elif hidden(child) or id(child) in style.without:
            continue
        elif child.tag in APART or child.blocks:
            flush()
            found += _block(child, style)
        else:
            run.append(_inline(child, style))
    flush()
    return found


def _block(node: Node, style: Style) -> list[str]:
    return WRITERS.get(node.tag, _blocks)(node, style)


def _heading(node: Node, style: Style) -> list[str]:
    title = _inside(node, style).replace("\n", " ")
    return [f"{'#' * int(node.tag[1])} {title}"] if title else []


def _quote(node: Node, style: Style) -> list[str]:
    text = "\n\n".join(_blocks(node, style))
    return [_prefixed(text, "> ", "> ")] if text else []


def _term(node: Node, style: Style) -> list[str]:
    text = _inside(node, style)
    return [f"**{text}**"] if text else []


def _rule(node: Node, style: Style) -> list[str]:  # noqa: ARG001 - as all that write a block
    return ["---"]


def _inline(node: Node, style: Style) -> str:
    match node.tag:
        case "br":
            return "\n"
        case "img":
            return _picture(node, style)
        case "code" | "kbd" | "samp" | "tt":
            text = SPACE.sub(" ", node.text())
            return f"`{text}`" if text.strip() and "`" not in text else text
        case "a":
            return _link(node, style)
        case _:
            return _stressed(node, style)


def _stressed(node: Node, style: Style) -> str:
    said = "".join(_pieces(node, style))
    mark = MARKS.get(node.tag, "") if style.links else ""
    bare = said.strip()
    return said.replace(bare, f"{mark}{bare}{mark}", 1) if mark and bare and "\n" not in bare else said


def _pieces(node: Node, style: Style) -> Iterable[str]:
    for child in node.children:
        if isinstance(child, str):
            yield SPACE.sub(" ", child)
        elif not hidden(child) and id(child) not in style.without:
            yield _inline(child, style)


def _link(node: Node, style: Style) -> str:
    words = "".join(_pieces(node, style))
    bare = _line(words).replace("\n", " ")
    goal = _address(node.attrs.get("href", ""), style)
    if not goal or not style.links or not bare:
        return words
    return f"{' ' if words[:1] == ' ' else ''}[{bare}]({goal}){' ' if words[-1:] == ' ' else ''}"


def _picture(node: Node, style: Style) -> str:
    words = SPACE.sub(" ", node.attrs.get("alt", "")).strip()
    if not words:
        return ""
    goal = _address(node.attrs.get("src", ""), style)
    return f"![{words}]({goal})" if goal and style.links else f"[picture: {words}]"


def _address(place: str, style: Style) -> str:
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


def _inside(node: Node, style: Style) -> str:
    return _line("".join(_pieces(node, style)))


def _line(text: str) -> str:
    return AROUND.sub("\n", re.sub(r" {2,}", " ", text)).strip()


def _list(node: Node, style: Style) -> list[str]:
    items: list[str] = []
    start = node.attrs.get("start", "1")
    number = int(start) if start.isdecimal() and len(start) < 6 else 1
    for child in node.children:
        if isinstance(child, str) or hidden(child) or id(child) in style.without:
            continue
        text = "\n".join(_blocks(child, style)) if child.tag == "li" else "\n".join(_block(child, style))
        if not text:
            continue
        mark = f"{number}. " if node.tag == "ol" else "- "
        number += 1
        items.append(_prefixed(text, mark, " " * len(mark)))
    return ["\n".join(items)] if items else []


def _prefixed(text: str, first: str, rest: str) -> str:
    head, *tail = text.split("\n")
    return "\n".join([first + head, *((rest + line).rstrip() for line in tail)])


def _code(node: Node, style: Style) -> list[str]:  # noqa: ARG001 - as all that write a block
    text = node.text().strip("\n").rstrip()
    if not text:
        return []
    named = (node.attrs.get("class", ""), *(inner.attrs.get("class", "") for inner in node.walk()))
    language = next((found.group(1) for name in named if (found := LANGUAGE.search(name))), "")
    longest = max((len(run) for run in TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}\n{text}\n{fence}"]


def _table(node: Node, style: Style) -> list[str]:
    if node.tables:  # Tables in tables are only there for the layout.
        return _blocks(node, style)
    rows = [
        [cell for cell in row.children if isinstance(cell, Node) and cell.tag in ("td", "th") and not hidden(cell)]
        for row in node.walk()
        if row.tag == "tr"
    ]
    rows = [row for row in rows if row]
    width = max((len(row) for row in rows), default=0)
    if width < 2 or width * len(rows) > CELLS:
        return _blocks(node, style)
    lines = [[_cell(cell, style) for cell in row] + [""] * (width - len(row)) for row in rows]
    drawn = ["| " + " | ".join(line) + " |" for line in lines if any(line)]
    if not drawn:
        return []
    caption = [_inside(inner, style) for inner in node.children if isinstance(inner, Node) and inner.tag == "caption"]
    return [*filter(None, caption), "\n".join([drawn[0], "|" + " --- |" * width, *drawn[1:]])]


def _cell(cell: Node, style: Style) -> str:
    return " ".join(_blocks(cell, style)).replace("\n", " ").replace("|", "\\|")


WRITERS: dict[str, Callable[[Node, Style], list[str]]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _heading),
    **dict.fromkeys(("ul", "ol", "menu", "dir"), _list),
    "pre": _code,
    "blockquote": _quote,
    "table": _table,
    "dt": _term,
    "hr": _rule,
}
