"""What an answer carries, whatever was asked: headers that bind the browser, and nothing that was slipped in."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.http.knocking import Answer, Home, House, open_house

from sylph.interfaces.http import pages

ME = "/api/v1/login"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("home")).configure("")) as opened:
        yield opened


def every(server: House) -> dict[str, Answer]:
    return {
        "page": server.ask("GET", "/login", token=""),
        "script": server.ask("GET", "/login.js", token=""),
        "json": server.ask("GET", "/api/v1/sessions"),
        "nothing there": server.ask("GET", "/nowhere"),
        "wrong method": server.ask("PATCH", ME, {}),
        "no credential": server.ask("GET", "/api/v1/sessions", token=""),
        "wrong host": server.ask("GET", "/login", None, {"Host": "evil.example"}),
        "wrong origin": server.ask("GET", "/login", None, {"Origin": "http://evil.example"}),
        "wrong body": server.ask("POST", "/api/v1/keys", b"{"),
        "no HTTP": server.raw(b"NONSENSE\r\n\r\n"),
        "no content": server.ask("DELETE", f"/api/v1/keys/{made['key']['id']}")
        if (made := server.ask("POST", "/api/v1/keys", {"name": "gone"}).json)
        else server.ask("GET", "/"),
        "refused websocket": server.upgrade({}),
    }


def test_every_answer_binds_the_browser(server: House) -> None:
    for name, answer in every(server).items():
        told = answer.headers
        assert told["x-content-type-options"] == "nosniff", name
        assert told["referrer-policy"] == "no-referrer", name
        assert told["cross-origin-opener-policy"] == "same-origin", name
        assert told["cross-origin-resource-policy"] == "same-origin", name
        assert "camera=()" in told["permissions-policy"], name
        policy = told["content-security-policy"]
        assert "frame-ancestors 'none'" in policy, name
        assert "default-src 'none'" in policy, name
        assert "unsafe" not in policy, name
        assert "server" not in told, name
        assert not any(each.startswith("access-control") for each in told), name


def test_nothing_of_the_api_is_kept_by_anybody(server: House) -> None:
    for path, token in (("/api/v1/sessions", None), ("/api/v1/health/live", ""), ("/api/v1/nowhere", None)):
        assert server.ask("GET", path, token=token).headers["cache-control"] == "no-store"


def test_pages_hold_no_script_and_no_style_of_their_own() -> None:
    for page in Path(pages.__file__).parent.glob("*.html"):
        text = page.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", text)


def test_without_tls_nothing_demands_it(server: House) -> None:
    assert "strict-transport-security" not in server.ask("GET", ME).headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/login/../../keys.db",
        "/login.html", "/pages/login.html", "/login%00.js", "//etc/passwd", "/%252e%252e/etc/passwd", "/login.js/..",
        "/..;/login", "/\\..\\..\\etc\\passwd", "/.git/config", "/keys.db", "/sylph.sock",
    ],
)  # fmt: skip
def test_no_path_leads_out(server: House, path: str) -> None:
    answer = server.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("said", ["x%0d%0aSet-Cookie:%20evil=1", "x%0aX-Evil:%201", "x%00y", "%E2%80%A8"])
def test_nothing_is_slipped_into_an_answer(server: House, said: str) -> None:
    for method, path in (
        ("GET", f"/{said}"),
        ("GET", f"/api/v1/keys/{said}"),
        ("GET", f"/api/v1/sessions/{said}"),
        ("GET", f"/login?next={said}"),
    ):
        answer = server.ask(method, path)
        assert not {"set-cookie", "x-evil"} & set(answer.headers)
        assert answer.status < 500


def test_no_header_is_said_back(server: House) -> None:
    wicked = {"Origin": "http://evil.example", "X-Request-Id": "abc", "X-Forwarded-Host": "evil.example"}
    answer = server.ask("GET", "/login", None, wicked, token="")
    assert b"evil" not in answer.raw
    forwarded = {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    assert "Secure" not in server.ask("POST", ME, {"code": server.link()}, forwarded, token="").headers["set-cookie"]


def test_a_name_cannot_break_lines(server: House) -> None:
    for name in ("a\r\nSet-Cookie: evil=1", "a\x00b", "\u2028"):
        assert server.ask("POST", "/api/v1/keys", {"name": name}).status == 400
        assert server.ask("POST", "/api/v1/links", {"name": name}).status == 400


@pytest.mark.parametrize(
    "query",
    [
        "gatewayUrl=ws://evil.example",
        "server=http://evil.example",
        "next=//evil.example",
        "redirect=https://evil.example",
    ],
)
def test_no_parameter_sends_the_browser_elsewhere(server: House, query: str) -> None:
    """Where the page talks to, and where it goes, is not for an address to say."""
    with_it, without = (server.ask("GET", path, token="") for path in (f"/login?{query}", "/login"))
    assert (with_it.status, with_it.body) == (200, without.body)
    assert "location" not in with_it.headers
    script = server.ask("GET", "/login.js", token="").body.decode()
    # One parameter counts, `next`, and only for a path of this server; test_security_browser tries it in a browser.
    assert re.findall(r"location\.search\)\.get\(([^)]*)\)", script) == ['"next"']
    assert "goal.origin === location.origin" in script
    assert re.findall(r"location(?:\.href|\.assign|\.replace)\s*[=(]([^)]*)", script) == ["goal"]
    assert re.findall(r"goal = ([^;]*);", script)[1:] == ['back() ?? "/"']
