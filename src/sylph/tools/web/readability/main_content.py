"""The part of a page that people come for, without menus, banners and footers."""

from urllib.parse import urljoin

from msgspec import Struct

from sylph.tools.web.readability.html_parser import HtmlNode, parse_html
from sylph.tools.web.readability.markdown import MarkdownStyle, is_hidden, render_markdown

ASIDE = frozenset(("nav", "footer", "aside"))
ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog"))
# A part that holds less of the page's words than this is not what the page is about.
SHARE = 0.35
FEW = 200
LEAF = frozenset(("p", "pre", "blockquote", "li", "dd", "td"))


class ReadableText(Struct, frozen=True, kw_only=True):
    title: str
    text: str
    whole: bool = True
    """Whether nothing that can be seen was left out."""


def extract_readable(source: str, url: str, *, links: bool = True, whole: bool = False) -> ReadableText:
    """What a page says: its main part, or all of it where none stands out or the `whole` is wanted."""
    root = parse_html(source)
    title = next((" ".join(node.text().split()) for node in root.walk() if node.tag == "title"), "")
    base = next((node.attrs.get("href", "") for node in root.walk() if node.tag == "base"), "")
    part = root if whole else _main_element(root)
    without = frozenset[int]() if whole else frozenset(id(node) for node in part.walk() if _is_aside(node, part, root))
    style = MarkdownStyle(base=_join_url(url, base), links=links, without=without)
    text = render_markdown(part, style)
    if not text and not whole:
        part, without = root, frozenset[int]()
        text = render_markdown(root, MarkdownStyle(base=style.base, links=links))
    if not text:
        text = _noscript_text(root)
    return ReadableText(title=title[:300], text=text, whole=part is root and not without)


def _main_element(root: HtmlNode) -> HtmlNode:
    """The element that the page is about; the root where none stands out."""
    sizes = _measure_text(root)
    enough = max(FEW, SHARE * sizes.get(id(root), 0))
    marked = [node for node in root.walk() if node.tag == "main" or node.attrs.get("role") == "main"]
    articles = [node for node in root.walk() if node.tag == "article"]
    for found in (marked, articles if len(articles) == 1 else [], _highest_scored(root)):
        best = max(found, key=lambda node: sizes.get(id(node), 0), default=None)
        if best is not None and (
            sizes.get(id(best), 0) >= enough or (found is marked and sizes.get(id(best), 0) > FEW)
        ):
            return best
    return root


def _measure_text(root: HtmlNode) -> dict[int, int]:
    """How many characters of every visible element can be read and are no link."""
    sizes: dict[int, int] = {}

    def measure(node: HtmlNode) -> int:
        size = 0
        for child in node.children:
            if isinstance(child, str):
                size += len(child.strip())
            elif not is_hidden(child) and child.tag != "a":
                size += measure(child)
        sizes[id(node)] = size
        return size

    measure(root)
    return sizes


def _highest_scored(root: HtmlNode) -> list[HtmlNode]:
    """The element whose children and grandchildren hold the most running text."""
    scores: dict[int, float] = {}
    known: dict[int, HtmlNode] = {}

    def credit(node: HtmlNode, parents: tuple[HtmlNode, ...]) -> None:
        for child in node.children:
            if isinstance(child, str) or is_hidden(child) or child.tag in ASIDE:
                continue
            if child.tag in LEAF:
                size = sum(len(piece.strip()) for piece in child.children if isinstance(piece, str))
                for share, parent in zip((1.0, 0.5, 0.25), (node, *parents), strict=False):
                    scores[id(parent)] = scores.get(id(parent), 0) + share * (size if size > 20 else 0)
                    known[id(parent)] = parent
            credit(child, (node, *parents[:1]))

    credit(root, ())
    best = max(scores, key=lambda key: scores[key], default=None)
    return [known[best]] if best is not None and known[best] is not root else []


def _is_aside(node: HtmlNode, part: HtmlNode, root: HtmlNode) -> bool:
    """Whether an element only stands beside what the page is about."""
    if node is part:
        return False
    if node.tag in ASIDE or node.attrs.get("role", "").lower() in ROLES:
        return True
    # The header of an article holds its title, that of a page the menu.
    return node.tag == "header" and part is root and not any(inner.tag == "h1" for inner in node.walk())


def _join_url(url: str, base: str) -> str:
    try:
        return urljoin(url, base)
    except ValueError:
        return url


def _noscript_text(root: HtmlNode) -> str:
    """What a page says to those who run no scripts."""
    said = [" ".join(node.text().split()) for node in root.walk() if node.tag == "noscript"]
    return "\n\n".join(filter(None, said))
