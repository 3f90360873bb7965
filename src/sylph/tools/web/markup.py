"""HTML as a tree, good enough to read by: one pass over the text, in time that grows with its length alone.

A parser made for browsers takes time that grows with the square of what a hostile page nests (100,000 open tags cost
one of them two minutes), the one of the standard library with the square of what is left open. Here both are bounded.
"""

import html
import re
from collections.abc import Iterator


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DEPTH = 100
NODES = 150_000

VOID = words("area base br col embed hr img input link meta param source track wbr")
# Their content is no markup; of the last two it is shown.
RAW = words("script style xmp iframe noembed noframes textarea title")
# They only wrap the whole, and pages often forget to close them.
OUTER = words("html head body")
BLOCK = words(
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table ul"
)
# What stands apart from its neighbours when it is read.
APART = BLOCK | words("tbody thead tfoot tr td th caption")
# What a start tag closes if it is still open, and what it does not look beyond.
IMPLIED: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (words("li"), words("ul ol menu")),
    "dt": (words("dt dd"), words("dl")),
    "dd": (words("dt dd"), words("dl")),
    "td": (words("td th"), words("tr table")),
    "th": (words("td th"), words("tr table")),
    "tr": (words("tr"), words("table")),
    "tbody": (words("tbody thead tfoot"), words("table")),
    "tfoot": (words("tbody thead tfoot"), words("table")),
    "option": (words("option"), words("select")),
}
PARAGRAPH = (words("p"), words("td th li div section article blockquote button table"))

NAME = re.compile(r"[a-zA-Z][^\s/>]*")
ATTRIBUTE = re.compile(r"""[\s/=]*([^\s/>=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]*))?""")
GAP = re.compile(r"[\s/=]*")


class Node:
    """An element: its tag, its attributes, and what is in it."""

    __slots__ = ("attrs", "blocks", "children", "tables", "tag")

    def __init__(self, tag: str, attrs: dict[str, str] | None = None) -> None:
        self.tag = tag
        self.attrs = attrs or {}
        self.children: list[Node | str] = []
        self.blocks = False
        """Whether something in it stands apart from its neighbours."""
        self.tables = False

    def walk(self) -> "Iterator[Node]":
        """Itself and every element in it, in the order of the page."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if isinstance(child, Node)]

    def text(self) -> str:
        """All its words, as they stand."""
        waiting: list[Node | str] = [self]
        parts: list[str] = []
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                parts.append(item)
            else:
                waiting += reversed(item.children)
        return "".join(parts)


def parse(source: str) -> Node:
    """The page as a tree. Whatever is wrong with it, there is one; what is beyond the bounds is left out."""
    builder = _Builder()
    at = 0
    while builder.nodes < NODES:
        start = source.find("<", at)
        if start < 0:
            builder.say(source[at:])
            break
        builder.say(source[at:start])
        at = _markup(builder, source, start)
        if at < 0:
            break
    return builder.root


def _markup(builder: "_Builder", source: str, start: int) -> int:
    """Takes in what begins with the `<` at `start`; where it ends, or -1 if it does not."""
    if source.startswith("<!--", start):
        return _after(source, "-->", start + 2)
    if source.startswith(("<!", "<?"), start):
        return _after(source, ">", start)
    if source.startswith("</", start):
        name = NAME.match(source, start + 2)
        if name:
            builder.close(name.group().lower())
        return _after(source, ">", start)
    name = NAME.match(source, start + 1)
    if name is None:
        builder.say("<")
        return start + 1
    return _element(builder, source, name.group().lower(), name.end())


def _element(builder: "_Builder", source: str, tag: str, at: int) -> int:
    attrs: dict[str, str] = {}
    while (at := _skipped(source, at)) < len(source) and source[at] != ">":
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
        builder.open(tag, attrs)
        return at
    end = re.compile(f"</{tag}", re.IGNORECASE).search(source, at)
    builder.raw(tag, attrs, source[at : end.start() if end else len(source)])
    return _after(source, ">", end.start()) if end else -1


def _skipped(source: str, at: int) -> int:
    gap = GAP.match(source, at)
    return gap.end() if gap else at


def _after(source: str, end: str, at: int) -> int:
    found = source.find(end, at)
    return -1 if found < 0 else found + len(end)


class _Builder:
    """The tree as far as it is known, and which elements are open."""

    def __init__(self) -> None:
        self.root = Node("")
        self.nodes = 0
        self._open = [self.root]

    def say(self, text: str) -> None:
        if text:
            self._open[-1].children.append(html.unescape(text) if "&" in text else text)

    def raw(self, tag: str, attrs: dict[str, str], text: str) -> None:
        node = Node(tag, attrs)
        node.children.append(html.unescape(text) if tag in ("textarea", "title") else text)
        self._open[-1].children.append(node)
        self.nodes += 1

    def open(self, tag: str, attrs: dict[str, str]) -> None:
        if tag in OUTER:
            return
        if tag in IMPLIED:
            self._end(*IMPLIED[tag])
        if tag in BLOCK:
            self._end(*PARAGRAPH)
        self._announce(tag)
        node = Node(tag, attrs)
        self._open[-1].children.append(node)
        self.nodes += 1
        if tag not in VOID and len(self._open) < DEPTH:
            self._open.append(node)

    def _announce(self, tag: str) -> None:
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

    def close(self, tag: str) -> None:
        self._end(frozenset((tag,)), frozenset())

    def _end(self, tags: frozenset[str], beyond: frozenset[str]) -> None:
        """Closes the innermost open element of these, if it stands before one of `beyond`."""
        for place in range(len(self._open) - 1, 0, -1):
            tag = self._open[place].tag
            if tag in tags:
                del self._open[place:]
                return
            if tag in beyond:
                return
