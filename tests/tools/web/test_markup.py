import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.tools.web.readability.html_parser import NODES, parse_html
from sylph.tools.web.readability.main_content import extract_readable

HERE = "https://a.example/dir/page"
LONG = "Words that fill a paragraph, so that it counts as one. " * 12


def md(source: str, *, links: bool = True, whole: bool = True) -> str:
    return extract_readable(source, HERE, links=links, whole=whole).text


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("<div>a <b>bold</b> <i>it</i></div>", "a **bold** *it*"),
        ("a<br>b", "a\nb"),
        ("a &amp; b&nbsp;c &lt;d&gt;", "a & b c <d>"),
        ("<h2>Head\n line</h2>x", "## Head line\n\nx"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ("<ol start=9><li>a<li>b</ol>", "9. a\n10. b"),
        ("<ul><li><p>a</p><p>b</p></ul>", "- a\n  b"),
        ("<pre><code class='language-rust'>fn  f() {\n}\n</code></pre>", "```rust\nfn  f() {\n}\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b"),
        ("<table><tr><th>a<th>b<tr><td>1<td>x|y<tr><td>2</table>", "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| 2 |  |"),
        ("<table><tr><td>only</table>", "only"),
        ("<table><tr><td>a<table><tr><td>b<td>c</table></table>", "a\n\n| b | c |\n| --- | --- |"),
        ("<table><caption>Cap</caption><tr><td>1<td>2</table>", "Cap\n\n| 1 | 2 |\n| --- | --- |"),
        ("<dl><dt>T<dd>D</dl>", "**T**\n\nD"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<code>x  =  1</code>", "`x = 1`"),
        ("<a href='../x y?q=(1)'>go  on</a>", "[go on](https://a.example/x%20y?q=(1%29)"),
        ("<a href='//b.example/'>b</a>", "[b](https://b.example/)"),
        ("<a href='javascript:alert(1)'>js</a> <a href='#x'>here</a>", "js here"),
        ("<a href='/x'><div>block</div></a>", "block"),
        ("<img src=i.png alt='A  cat'><img src=j.png>", "![A cat](https://a.example/dir/i.png)"),
        ("<img src='data:image/png;base64,xx' alt=cat>", "[picture: cat]"),
        ("<base href='https://c.example/'><a href=x>x</a>", "[x](https://c.example/x)"),
        ("1 < 2 and <3", "1 < 2 and <3"),
        ("<p>a</p></div></section>b", "a\n\nb"),
        ("<P CLASS=x>a</P>", "a"),
        ("<p title='a > b'>c", "c"),
        ("<script>if (a < b) document.write('<p>x')</script>y", "y"),
        ("<style>p { }</STYLE >y", "y"),
        ("<!-- <p>x -->y<!doctype html><?php x ?>", "y"),
        ("<p>a<!-- never ends", "a"),
        ("<p>a<b never=ends", "a"),
        ("<textarea><p>x</textarea>y", "y"),
        ("<svg><text>x</text></svg>y", "y"),
        ("<details><summary>S</summary>body</details>", "S\n\nbody"),
        ("<strong>  </strong>x", "x"),
        ("", ""),
    ],
)
def test_markup_becomes_markdown(source: str, wanted: str) -> None:
    assert md(source) == wanted


def test_without_links_there_is_only_text() -> None:
    assert md("<p><b>a</b> <a href=x>b</a><img src=x alt=c>", links=False) == "a b[picture: c]"


def test_the_main_part_stands_out() -> None:
    rest = "<header><ul><li><a href=/>Menu</a></ul></header>", "<aside>Buy!</aside><footer>Imprint</footer>"
    for start, end in (("<main>", "</main>"), ("<article>", "</article>"), ("<div role=main>", "</div>")):
        found = extract_readable(f"<title>T</title>{rest[0]}{start}<p>{LONG}{end}{rest[1]}", HERE)
        assert (found.title, found.text, found.whole) == ("T", LONG.strip(), False)


def test_where_nothing_is_marked_the_running_text_is_found() -> None:
    menu = "<div class=menu>" + "".join(f"<a href={n}>Entry {n}</a> " for n in range(30)) + "</div>"
    found = extract_readable(f"{menu}<div><div><h1>Head</h1><p>{LONG}</p><p>{LONG}</p></div></div><div>end</div>", HERE)
    assert found.text == f"# Head\n\n{LONG.strip()}\n\n{LONG.strip()}"


def test_a_page_of_links_keeps_them() -> None:
    links = "".join(f"<li><a href=/{number}>Story number {number}</a>" for number in range(30))
    assert extract_readable(f"<ul>{links}</ul>", HERE).text.count("](https://a.example/") == 30


def test_the_title_of_an_article_stays_though_it_stands_in_a_header() -> None:
    assert "# Title" in extract_readable(f"<article><header><h1>Title</h1></header><p>{LONG}</article>", HERE).text


HOSTILE = (
    "<div>", "<!--", "<![CDATA[", "<a b='", "<table>", "<b><i><p>", "&", "<table><tr><td>", "<ul><li>", "<a href=x>",
    "<a ", '<a b="', "<span>", "&#x;", "`", "</p>", "<pre>`", "<", "</", "<title>", "<script>", "\0", "<p ",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_markup_comes_to_an_end(piece: str) -> None:
    # What grows with the square of its length takes longer here than a test may.
    found = extract_readable(piece * 20_000, HERE)
    assert len(found.text) <= 20_000 * len(piece) * 3


def test_a_page_of_endless_elements_is_read_as_far_as_its_bound() -> None:
    assert sum(1 for _ in parse_html("<b>" * (NODES * 2)).walk()) == NODES + 1


@given(st.lists(st.sampled_from([*HOSTILE, "</div>", "x", ">", "'", '"', "/", "=", " ", "-->", "</table>", "</li>"])))
def test_whatever_comes_is_read(pieces: list[str]) -> None:
    source = "".join(pieces)
    extract_readable(source, HERE)
    extract_readable(source, HERE, links=False, whole=True)


@given(st.text())
def test_any_text_is_read(source: str) -> None:
    extract_readable(source, source)
