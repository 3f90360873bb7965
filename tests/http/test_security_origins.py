"""Other sites: names that were rebound, forged origins, forms that ride on a cookie; and those that may."""

from collections.abc import Generator

import pytest
from tests.http.knocking import Home, House, open_house

ME = "/api/v1/login"
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("home")).configure("")) as opened:
        yield opened


@pytest.fixture(scope="module")
def cookie(server: House) -> str:
    return server.login()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """A server that another site may use, and that has a name."""
    told = '[server]\norigins = ["https://app.example"]\nnames = ["sylph.home.example"]\n'
    with open_house(Home(tmp_path_factory.mktemp("shared")).configure(told)) as opened:
        yield opened


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8090", "127.0.0.1.evil.example", "localhost.evil.example", "169.254.169.254",
        "0.0.0.0", "", "localhost:80:80", "localhost@evil.example", "[::1", "127.0.0.1, evil.example", "2130706433",
    ],
)  # fmt: skip
def test_a_name_that_was_rebound_to_us_is_refused(server: House, host: str) -> None:
    """Whatever is asked: a page, the API with a good token, or a WebSocket."""
    for path in ("/login", ME, "/api/v1/health/live"):
        assert (answer := server.ask("GET", path, None, {"Host": host})).status == 421, answer
    assert server.upgrade({"Host": host, "Authorization": f"Bearer {server.token}"}).status == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8090", "[::1]:8090", "localhost."]
)
def test_our_own_names_are_known(server: House, host: str) -> None:
    assert server.ask("GET", ME, None, {"Host": host}).status == 200


def test_no_host_or_two_are_refused(server: House) -> None:
    assert server.raw(b"GET /login HTTP/1.1\r\n\r\n").status in (400, 421)
    assert server.raw(b"GET /login HTTP/1.0\r\n\r\n").status == 421
    assert server.raw(b"GET /login HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").status == 400
    assert server.raw(b"GET http://evil.example/login HTTP/1.1\r\nHost: evil.example\r\n\r\n").status == 421


def test_a_name_that_was_configured_is_known(shared: House) -> None:
    assert shared.ask("GET", ME, None, {"Host": "sylph.home.example"}).status == 200
    assert shared.ask("GET", ME, None, {"Host": "other.home.example"}).status == 421


@pytest.mark.parametrize(
    "origin",
    [EVIL, "null", "file://", "http://localhost:3000", "http://127.0.0.1", "http://evil@{}", "{}.evil.example"],
)
def test_a_foreign_origin_is_refused(server: House, cookie: str, origin: str) -> None:
    """With a token and with a cookie, for reading too; a dev server on another port is as foreign as any."""
    headers = {"Origin": origin.format(server.origin.removeprefix("http://"))}
    for given in ({}, {"Cookie": cookie}):
        token = "" if given else server.token
        for method, path in (("GET", "/api/v1/sessions"), ("POST", "/api/v1/sessions"), ("GET", "/login")):
            answer = server.ask(method, path, {} if method == "POST" else None, {**headers, **given}, token=token)
            assert (answer.status, answer.kind) == (403, "foreign_origin")
            assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost:3000", "https://127.0.0.1"])
def test_a_foreign_origin_gets_no_websocket(server: House, cookie: str, origin: str) -> None:
    for given in ({"Cookie": cookie}, {"Authorization": f"Bearer {server.token}"}):
        answer = server.upgrade({"Origin": origin, **given})
        assert (answer.status, answer.kind) == (403, "foreign_origin")


def test_a_websocket_needs_a_credential_and_with_a_cookie_our_origin(server: House, cookie: str) -> None:
    assert server.upgrade({}).status == 401
    assert server.upgrade({"Origin": server.origin}).status == 401
    assert server.upgrade({"Authorization": "Bearer undefined"}).status == 401
    assert server.upgrade({"Cookie": cookie}).status == 403, "nobody says that a page of ours opened it"
    assert server.upgrade({"Cookie": cookie, "Origin": server.origin}).status == 101
    assert server.upgrade({"Cookie": cookie, "Origin": server.origin}, "/nowhere").status == 404


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_sites_page_embeds_is_refused(server: House, cookie: str, site: str) -> None:
    """No Origin comes with a picture or a script: the browser says by other words whose page it is."""
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    for path in ("/api/v1/sessions", "/login", "/login.js"):
        assert server.ask("GET", path, None, {**headers, "Cookie": cookie}, token="").status == 403


def test_a_link_on_another_site_leads_to_our_page_but_not_into_the_api(server: House) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.ask("GET", "/login", None, headers, token="").status == 200
    assert server.ask("GET", "/api/v1/sessions", None, headers).status == 403
    assert server.ask("POST", "/login", None, headers, token="").status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "application/x-www-form-urlencoded", "Origin": "{}"},
        {"Content-Type": "multipart/form-data; boundary=x", "Origin": "{}"},
        {"Content-Type": "text/plain", "Origin": "{}"},
        {"Content-Type": "text/plain; charset=utf-8", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": EVIL},
        {"Origin": "null"},
    ],
)
def test_nobody_rides_on_a_cookie(server: House, cookie: str, headers: dict[str, str]) -> None:
    given = {name: value.format(server.origin) for name, value in headers.items()}
    answer = server.ask("POST", "/api/v1/sessions", {}, {"Cookie": cookie, **given}, token="")
    assert (answer.status, answer.kind in ("foreign_origin", "forged")) == (403, True)
    assert server.ask("GET", "/api/v1/sessions").json["items"] == []


def test_our_own_page_may_use_its_cookie(server: House, cookie: str) -> None:
    for proof in ({"Origin": server.origin}, {"Sec-Fetch-Site": "same-origin"}):
        headers = {"Cookie": cookie, **proof}
        made = server.ask("POST", "/api/v1/links", {}, headers, token="")
        assert made.status == 201
        form = {**headers, "Content-Type": "text/plain", "X-Sylph": "1"}
        assert server.ask("POST", "/api/v1/links", {}, form, token="").status == 201
    assert server.ask("GET", ME, None, {"Cookie": cookie}, token="").status == 200


def test_cors_is_off(server: House) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = server.ask("OPTIONS", "/api/v1/sessions", None, asked, token="")
    assert answer.status == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_site_that_was_named_may_use_a_token(shared: House) -> None:
    site = {"Origin": "https://app.example"}
    before = {**site, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    asked = shared.ask("OPTIONS", "/api/v1/sessions", None, before, token="")
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == "https://app.example"
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "authorization" in asked.headers["access-control-allow-headers"].lower()
    got = shared.ask("GET", "/api/v1/sessions", None, {**site, "Sec-Fetch-Site": "cross-site"})
    assert (got.status, got.headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert got.headers["vary"] == "Origin"
    wrong = shared.ask("GET", "/api/v1/sessions", None, site, token="")
    assert (wrong.status, wrong.headers["access-control-allow-origin"]) == (401, "https://app.example"), (
        "it can be read"
    )


def test_a_site_that_was_named_has_no_use_of_the_cookie(shared: House) -> None:
    headers = {"Origin": "https://app.example", "Cookie": shared.login()}
    refused = shared.ask("POST", "/api/v1/links", {}, headers, token="")
    assert (refused.status, refused.kind) == (403, "foreign_origin")
    got = shared.ask("GET", ME, None, headers, token="")
    assert "access-control-allow-credentials" not in got.headers
    assert shared.upgrade(headers).status == 403


@pytest.mark.parametrize("origin", ["https://app.example.evil", "http://app.example", "https://app.example:444", EVIL])
def test_a_site_that_is_nearly_the_named_one_may_not(shared: House, origin: str) -> None:
    answer = shared.ask("GET", "/api/v1/sessions", None, {"Origin": origin})
    assert (answer.status, "access-control-allow-origin" in answer.headers) == (403, False)
