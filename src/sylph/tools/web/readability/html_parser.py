"""HTML as a tree, good enough to read by: one pass over the text, in time that grows with its length alone.

A parser made for browsers takes time that grows with the square of what a hostile page nests (100,000 open tags cost
one of them two minutes), the one of the standard library with the square of what is left open. Here both are bounded.
"""

import html
import re
from collections.abc import Iterator


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


DEPTH = 100
NODES = 150_000

VOID = word_set("area base br col embed hr img input link meta param source track wbr")
# Their content is no markup; of the last two it is shown.
RAW = word_set("script style xmp iframe noembed noframes textarea title")
# They only wrap the whole, and pages often forget to close them.
OUTER = word_set("html head body")
BLOCK = word_set(
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table ul"
)
# What stands apart from its neighbours when it is read.
APART = BLOCK | word_set("tbody thead tfoot tr td th caption")
# What a start tag closes if it is still open, and what it does not look beyond.
IMPLIED: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (word_set("li"), word_set("ul ol menu")),
    "dt": (word_set("dt dd"), word_set("dl")),
    "dd": (word_set("dt dd"), word_set("dl")),
    "td": (word_set("td th"), word_set("tr table")),
    "th": (word_set("td th"), word_set("tr table")),
    "tr": (word_set("tr"), word_set("table")),
    "tbody": (word_set("tbody thead tfoot"), word_set("table")),
    "tfoot": (word_set("tbody thead tfoot"), word_set("table")),
    "option": (word_set("option"), word_set("select")),
}
PARAGRAPH = (word_set("p"), word_set("td th li div section article blockquote button table"))

NAME = re.compile(r"[a-zA-Z][^\s/>]*")
ATTRIBUTE = re.compile(r"""[\s/=]*([^\s/>=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]*))?""")
GAP = re.compile(r"[\s/=]*")


class HtmlNode:
    """An element: its tag, its attributes, and what is in it."""

    __slots__ = ("attrs", "blocks", "children", "tables", "tag")

    def __init__(self, tag: str, attrs: dict[str, str] | None = None) -> None:
        self.tag = tag
        self.attrs = attrs or {}
        self.children: list[HtmlNode | str] = []
        self.blocks = False
        """Whether something in it stands apart from its neighbours."""
        self.tables = False

    def walk(self) -> "Iterator[HtmlNode]":
        """Itself and every element in it, in the order of the page."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if isinstance(child, HtmlNode)]

    def text(self) -> str:
        """All its words, as they stand."""
        waiting: list[HtmlNode | str] = [self]
        parts: list[str] = []
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                parts.append(item)
            else:
                waiting += reversed(item.children)
        return "".join(parts)


def parse_html(source: str) -> HtmlNode:
    """The page as a tree. Whatever is wrong with it, there is one; what is beyond the bounds is left out."""
    builder = _Builder()
    at = 0
    while builder.nodes < NODES:
        start = source.find("<", at)
        if start < 0:
            builder.add_text(source[at:])
            break
        builder.add_text(source[at:start])
        at = _read_markup(builder, source, start)
        if at < 0:
            break
    return builder.root


def _read_markup(builder: "_Builder", source: str, start: int) -> int:
    """Takes in what begins with the `<` at `start`; where it ends, or -1 if it does not."""
    if source.startswith("<!--", start):
        return _end_of(source, "-->", start + 2)
    if source.startswith(("<!", "<?"), start):
        return _end_of(source, ">", start)
    if source.startswith("</", start):
        name = NAME.match(source, start + 2)
        if name:
            builder.close_element(name.group().lower())
        return _end_of(source, ">", start)
    name = NAME.match(source, start + 1)
    if name is None:
        builder.add_text("<")
        return start + 1
    return _read_element(builder, source, name.group().lower(), name.end())


def _read_element(builder: "_Builder", source: str, tag: str, at: int) -> int:
    attrs: dict[str, str] = {}
    while (at := _skip_gap(source, at)) < len(source) and source[at] != ">":
        found = ATTRIBUTE.match(source, at)
        if found is None:
            return -1
        value = found.group(2) or ""
        attrs.setdefault(found.group(1).lower(), html.unescape(value.strip("\"'") if value[:1] in "\"'" else value))
        at = found.end()
    if at >= len(source):
        return -1
    at += 1
    if tag not in RAW:
        builder.open_element(tag, attrs)
        return at
    end = re.compile(f"</{tag}", re.IGNORECASE).search(source, at)
    builder.add_raw(tag, attrs, source[at : end.start() if end else len(source)])
    return _end_of(source, ">", end.start()) if end else -1


def _skip_gap(source: str, at: int) -> int:
    gap = GAP.match(source, at)
    return gap.end() if gap else at


def _end_of(source: str, end: str, at: int) -> int:
    found = source.find(end, at)
    return -1 if found < 0 else found + len(end)


class _Builder:
    """The tree as far as it is known, and which elements are open."""

    def __init__(self) -> None:
        self.root = HtmlNode("")
        self.nodes = 0
        self._open = [self.root]

    def add_text(self, text: str) -> None:
        if text:
            self._open[-1].children.append(html.unescape(text) if "&" in text else text)

    def add_raw(self, tag: str, attrs: dict[str, str], text: str) -> None:
        node = HtmlNode(tag, attrs)
        node.children.append(html.unescape(text) if tag in ("textarea", "title") else text)
        self._open[-1].children.append(node)
        self.nodes += 1

    def open_element(self, tag: str, attrs: dict[str, str]) -> None:
        if tag in OUTER:
            return
        if tag in IMPLIED:
            self._close_innermost(*IMPLIED[tag])
        if tag in BLOCK:
            self._close_innermost(*PARAGRAPH)
        self._mark_ancestors(tag)
        node = HtmlNode(tag, attrs)
        self._open[-1].children.append(node)
        self.nodes += 1
        if tag not in VOID and len(self._open) < DEPTH:
            self._open.append(node)

    def _mark_ancestors(self, tag: str) -> None:
        """Tells those around it; what is around one that knows, knows too."""
        if tag in APART:
            for node in reversed(self._open):
                if node.blocks:
                    break
                node.blocks = True
        if tag == "table":
            for node in reversed(self._open):
                if node.tables:
                    break
                node.tables = True

    def close_element(self, tag: str) -> None:
        self._close_innermost(frozenset((tag,)), frozenset())

    def _close_innermost(self, tags: frozenset[str], beyond: frozenset[str]) -> None:
        """Closes the innermost open element of these, if it stands before one of `beyond`."""
        for place in range(len(self._open) - 1, 0, -1):
            tag = self._open[place].tag
            if tag in tags:
                del self._open[place:]
                return
            if tag in beyond:
                return
