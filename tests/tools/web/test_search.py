import re
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs

import msgspec
import pytest
from tests.tools.desk import Desk, refused
from tests.tools.web.servers import moved, page, site

from sylph.core.tool import Tool
from sylph.net.http_client import HttpClient
from sylph.tools.web.search.tool import WebSearchArgs, build_web_search_tool
from sylph.tools.web.settings import SearchService, SearchServiceName

# As the services answer, shortened.
TAVILY = """{"query":"q","follow_up_questions":null,"answer":null,"images":[],"results":[
{"title":"One & two","url":"https://one.example/","content":"First snippet","score":0.9,"raw_content":null},
{"title":"Two","url":"https://two.example/","content":"Second\\nsnippet","score":0.8}],"response_time":1.2}"""
BRAVE = """{"type":"search","query":{"original":"q"},"mixed":{},"web":{"type":"search","results":[
{"title":"One &amp; two","url":"https://one.example/","description":"<strong>First</strong> snippet","age":"May 1"},
{"title":"Two","url":"https://two.example/","description":"Second snippet","language":"en"}]}}"""
SEARXNG = """{"query":"q","number_of_results":0,"results":[{"url":"https://one.example/","title":"One & two",
"content":"First snippet","engine":"x","score":1.0},{"url":"https://two.example/","title":"Two","content":null}],
"answers":[],"suggestions":[],"unresponsive_engines":[]}"""
DUCK = """<!DOCTYPE html><html><body><div class="serp__results"><div class="result results_links result--ad">
<h2 class="result__title"><a class="result__a" href="https://duckduckgo.com/y.js?ad_provider=x">Buy</a></h2>
<a class="result__snippet" href="x">An advertisement</a></div>
<div class="result results_links results_links_deep web-result"><h2 class="result__title"><a rel="nofollow"
class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fone.example%2F&amp;rut=ab">One &amp; <b>two</b></a>
</h2><a class="result__snippet" href="x"><b>First</b> snippet</a></div>
<div class="result"><a class="result__a" href="https://two.example/">Two</a></div></div></body></html>"""
LITE = """<table><tr><td>1.</td><td><a href="https://one.example/" class='result-link'>One &amp; two</a></td>
</tr><tr><td></td><td class='result-snippet'>First snippet</td></tr>
<tr><td><a href="//duckduckgo.com/l/?uddg=https%3A%2F%2Ftwo.example%2F" class='result-link'>Two</a></td></tr></table>"""
ROBOT = """<form><div class="anomaly-modal__mask"><div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo
too.</div></div></form>"""
ANSWERS: list[tuple[SearchServiceName, str, str]] = [
    ("tavily", "search", TAVILY),
    ("brave", "res/v1/web/search", BRAVE),
    ("searxng", "search", SEARXNG),
    ("duckduckgo", "html/", DUCK),
    ("duckduckgo", "html/", LITE),
]


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


def tool(client: HttpClient, name: SearchServiceName, url: str, key: str = "k3y") -> Tool:
    return build_web_search_tool(SearchService(name=name, base_url=url, api_key=key, seconds=5.0), client)


@pytest.mark.parametrize(("name", "path", "answer"), ANSWERS)
async def test_every_service_is_understood(
    desk: Desk, client: HttpClient, name: SearchServiceName, path: str, answer: str
) -> None:
    async with site(**{path: page(answer)}) as place:
        told = (await desk.use(tool(client, name, place.url + "/"), query="q")).text
    lines = told.splitlines()
    assert lines[0] == f"[{name}: 2 results for q]"
    assert "written by others" in lines[1]
    assert lines[3:6] == ["1. One & two", "   https://one.example/", lines[5]]
    assert lines[5].endswith("First snippet")
    assert lines[6:8] == ["2. Two", "   https://two.example/"]


async def test_a_limit_holds(desk: Desk, client: HttpClient) -> None:
    async with site(search=page(SEARXNG)) as place:
        told = (await desk.use(tool(client, "searxng", place.url), query="q", limit=1)).text
    assert "One & two" in told
    assert "two.example" not in told


async def test_tavily_is_asked_in_its_own_words(desk: Desk, client: HttpClient) -> None:
    async with site(search=page(TAVILY)) as place:
        asked = tool(client, "tavily", place.url)
        await desk.use(asked, query="a b", limit=3, site="https://Docs.Example/x", freshness="week")
    head, _, body = place.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /search HTTP/1.1")
    assert b"Authorization: Bearer k3y" in head
    assert msgspec.json.decode(body) == {
        "query": "a b", "max_results": 3, "search_depth": "basic", "include_domains": ["docs.example"],
        "time_range": "week",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "path", "answer", "wanted", "header"),
    [
        ("brave", "res/v1/web/search", BRAVE, {"q": "a b site:x.example", "count": "3", "freshness": "pm"}, "X-Subsc"),
        ("searxng", "search", SEARXNG, {"q": "a b site:x.example", "format": "json", "time_range": "month"}, "Bearer"),
        ("duckduckgo", "html/", DUCK, {"q": "a b site:x.example", "df": "m"}, "Mozilla"),
    ],
)
async def test_the_others_are_asked_in_theirs(
    desk: Desk, client: HttpClient, name: SearchServiceName, path: str, answer: str, wanted: dict[str, str], header: str
) -> None:
    async with site(**{path: page(answer)}) as place:
        asked = tool(client, name, place.url)
        await desk.use(asked, query="a b", limit=3, site="x.example", freshness="month")
    head = place.heard[0].decode()
    sent = parse_qs(head.split(" ")[1].partition("?")[2])
    assert {key: [value] for key, value in wanted.items()}.items() <= sent.items()
    assert header in head


async def test_nothing_found_is_said(desk: Desk, client: HttpClient) -> None:
    async with site(search=page('{"results":[]}')) as place:
        told = (await desk.use(tool(client, "searxng", place.url), query="q")).text
    assert "Nothing was found" in told


@pytest.mark.parametrize(("name", "missing"), [("tavily", "key"), ("brave", "key"), ("searxng", "address")])
async def test_what_is_not_set_up_says_how(
    desk: Desk, client: HttpClient, name: SearchServiceName, missing: str
) -> None:
    with refused("not_configured") as caught:
        await desk.use(tool(client, name, "", key=""), query="q")
    assert missing in str(caught.value)
    assert "sylph config set web.search." in caught.value.trouble.next[0]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        ("401 N", '{"detail":{"error":"Unauthorized"}}', "does not accept the key"),
        ("403 N", "Forbidden", "JSON format"),
        ("429 N", "", "asks for a pause"),
        ("500 N", "", r"failed \(status 500\)"),
        ("200 OK", "<p>hello", "not a list of results"),
        ("200 OK", '{"results":[{"title":1}]}', "not a list of results"),
        ("200 OK", "", "not a list of results"),
    ],
)
async def test_a_service_that_fails_is_named_with_a_way_out(
    desk: Desk, client: HttpClient, status: str, body: str, said: str
) -> None:
    async with site(search=page(body, "text/plain", status)) as place:
        with refused("search_failed") as caught:
            await desk.use(tool(client, "searxng", place.url), query="q")
    assert re.search(said, str(caught.value))
    assert "web.search.provider" in caught.value.trouble.next[1]


async def test_a_service_that_takes_us_for_a_robot_is_not_an_empty_answer(desk: Desk, client: HttpClient) -> None:
    async with site(**{"html/": page(ROBOT, "text/html", "202 Accepted")}) as place:
        with refused("search_failed") as caught:
            await desk.use(tool(client, "duckduckgo", place.url), query="q")
    assert "person" in str(caught.value)


async def test_a_service_that_cannot_be_reached_is_said_plainly(desk: Desk, client: HttpClient) -> None:
    async with site() as place:
        pass
    with refused("search_failed"):
        await desk.use(tool(client, "searxng", place.url), query="q")


async def test_a_key_does_not_follow_a_redirect(desk: Desk, client: HttpClient) -> None:
    async with site(search=moved("http://evil.example/")) as place:
        with refused("search_failed") as caught:
            await desk.use(tool(client, "searxng", place.url), query="q")
    assert "redirects are not followed" in str(caught.value)


async def test_a_site_that_is_none_is_refused(desk: Desk, client: HttpClient) -> None:
    with refused("bad_site"):
        await desk.use(tool(client, "searxng", "http://127.0.0.1:1"), query="q", site="a b")


def test_a_search_is_judged_by_the_host_of_its_service(desk: Desk, client: HttpClient) -> None:
    asked = tool(client, "brave", "")
    assert asked.judge
    judged = asked.judge(msgspec.convert({"query": "q"}, WebSearchArgs), desk.context)
    assert (judged.effect, judged.risk, judged.hosts) == ("external", "safe", ("api.search.brave.com",))
