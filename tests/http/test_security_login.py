"""Logging in: links that work once, cookies that end, guesses that get nowhere."""

import sqlite3
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import segno
from tests.http.knocking import Home, House, open_house

LOGIN = "/api/v1/login"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("home")).configure("")) as opened:
        yield opened


def enter(server: House, source: str, **body: str) -> int:
    return server.ask("POST", LOGIN, body, token="", source=source).status


def change(server: House, words: str) -> None:
    with closing(sqlite3.connect(server.home.data / "keys.db", timeout=10)) as base, base:
        base.execute(words)


def test_a_link_logs_in_once(server: House) -> None:
    made = server.ask("POST", "/api/v1/links", {"name": "phone", "scopes": ["read"]}).json
    address, _, code = made["url"].partition("#")
    assert address == f"{server.url}/login", "what is secret stands where no browser sends it"
    page = server.ask("GET", "/login", token="")
    assert page.status == 200, "looking at the page does not use it up"
    first = server.ask("POST", LOGIN, {"code": code}, token="", source="127.0.2.1")
    assert (first.status, first.json["name"], first.json["scopes"]) == (200, "phone", ["read"])
    second = server.ask("POST", LOGIN, {"code": code}, token="", source="127.0.2.1")
    assert (second.status, second.kind) == (401, "unauthorized")


def test_a_link_comes_as_a_code_for_a_camera_too(server: House) -> None:
    made = server.ask("POST", "/api/v1/links", {}).json
    rows = made["qr"]
    assert rows == ["".join("01"[dark] for dark in row) for row in segno.make(made["url"], micro=False).matrix]
    assert {len(row) for row in rows} == {len(rows)}
    assert rows[0].startswith("11111110"), "the finder pattern in the corner"


def test_of_many_who_use_a_link_at_the_same_time_one_gets_in(server: House) -> None:
    code = server.link()
    with ThreadPoolExecutor(12) as pool:
        tries = [pool.submit(enter, server, f"127.0.3.{at}", code=code) for at in range(1, 13)]
        got = [each.result() for each in tries]
    assert sorted(got) == [200, *[401] * 11]


def test_a_link_ends_after_ten_minutes(server: House) -> None:
    made = server.ask("POST", "/api/v1/links", {}).json
    row = next(key for key in server.ask("GET", "/api/v1/keys").json["items"] if key["kind"] == "link")
    assert row["expires"] - row["created"] == 600_000
    change(server, "update key set expires = 1 where kind = 'link'")
    assert enter(server, "127.0.2.2", code=made["url"].partition("#")[2]) == 401


def test_the_command_line_makes_links(server: House) -> None:
    said = server.home.run("token", "link", "--scope", "read", "--qr")
    assert said.stdout.startswith(f"{server.url}/login#sylph_")
    assert "█" in said.stdout or "▄" in said.stdout
    told = server.home.run("token", "link", "--json").stdout
    assert '"url"' in told
    wrong = server.home.run("token", "link", "--scope", "root")
    assert (wrong.returncode != 0, "scopes" in wrong.stderr) == (True, True)


def test_without_a_server_there_is_no_link(tmp_path_factory: pytest.TempPathFactory) -> None:
    said = Home(tmp_path_factory.mktemp("none")).configure("").run("token", "link")
    assert (said.returncode, "sylph serve" in said.stderr) == (1, True)


def test_the_cookie_is_for_this_site_and_no_script(server: House) -> None:
    entered = server.ask("POST", LOGIN, {"code": server.link()}, token="", source="127.0.2.3")
    said = [each.strip().lower() for each in entered.headers["set-cookie"].split(";")]
    assert {"httponly", "samesite=strict", "path=/", "max-age=86400"} <= set(said)
    assert not any(each.startswith("domain") for each in said)
    assert entered.headers["cache-control"] == "no-store"


def test_a_key_logs_in_by_hand_and_its_login_ends_with_it(server: House) -> None:
    made = server.ask("POST", "/api/v1/keys", {"name": "by hand", "scopes": ["read"], "expires_in": 60}).json
    entered = server.ask("POST", LOGIN, {"key": made["token"]}, token="", source="127.0.2.4")
    assert entered.json["expires"] <= made["key"]["expires"] + 1000, "it does not outlive the key"
    cookie = {"Cookie": entered.cookie}
    assert server.ask("GET", LOGIN, None, cookie, token="").json["scopes"] == ["read"]
    assert server.ask("GET", "/api/v1/keys", None, cookie, token="").status == 403
    assert server.ask("DELETE", f"/api/v1/keys/{made['key']['id']}").status == 204
    assert server.ask("GET", LOGIN, None, cookie, token="").status == 401


def test_logging_out_ends_the_cookie_for_good(server: House) -> None:
    cookie = {"Cookie": server.login("127.0.2.5"), "Origin": server.origin}
    assert server.ask("GET", LOGIN, None, cookie, token="").json["way"] == "cookie"
    left = server.ask("DELETE", LOGIN, None, cookie, token="")
    assert (left.status, "max-age=0" in left.headers["set-cookie"].lower()) == (204, True)
    assert server.ask("GET", "/api/v1/sessions", None, cookie, token="").status == 401
    assert server.ask("DELETE", LOGIN, None, cookie, token="").status == 401
    assert server.ask("DELETE", LOGIN).status == 400, "a token is revoked, not logged out"


def test_a_cookie_ends_after_a_day_and_when_it_is_revoked(server: House) -> None:
    first, second = server.login("127.0.2.6"), server.login("127.0.2.6")
    rows = [key for key in server.ask("GET", "/api/v1/keys").json["items"] if key["kind"] == "cookie"]
    assert {row["expires"] - row["created"] for row in rows[-2:]} == {86_400_000}
    change(server, f"update key set expires = 1 where id = '{rows[-2]['id']}'")
    assert server.ask("GET", LOGIN, None, {"Cookie": first}, token="").status == 401
    assert server.ask("GET", LOGIN, None, {"Cookie": second}, token="").status == 200
    server.home.run("token", "revoke", rows[-1]["id"])
    assert server.ask("GET", LOGIN, None, {"Cookie": second}, token="").status == 401


def test_a_token_is_no_cookie_and_a_cookie_no_token(server: House) -> None:
    cookie = server.login("127.0.2.7")
    assert server.ask("GET", LOGIN, None, {"Cookie": f"sylph={server.token}"}, token="").status == 401
    assert server.ask("GET", LOGIN, token=cookie.partition("=")[2]).status == 401
    assert server.ask("GET", LOGIN, token=server.link()).status == 401
    for wrong in ("sylph=", "sylph=undefined", "xsylph=" + cookie, "sylph", ";;;=;", 'sylph="'):
        assert server.ask("GET", LOGIN, None, {"Cookie": wrong}, token="").status == 401


@pytest.mark.parametrize("body", [{}, {"code": "a", "key": "b"}, {"code": 1}, {"code": "x" * 201}, {"user": "x"}, []])
def test_a_login_that_is_none_says_why(server: House, body: object) -> None:
    answer = server.ask("POST", LOGIN, body, token="", source=f"127.0.5.{len(str(body))}")
    assert (answer.status, bool(answer.json["next"])) == (400, True)


@pytest.mark.parametrize("key", ["undefined", "changeme", "null", " "])
def test_a_placeholder_does_not_log_in(server: House, key: str) -> None:
    assert enter(server, "127.0.2.8", key=key) == 401


def test_who_guesses_gets_slow(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also many at once, and also with the right code: it is not looked at. Others do not notice, up to a point."""
    with open_house(Home(tmp_path_factory.mktemp("guess")).configure("")) as server:
        code = server.link()
        with ThreadPoolExecutor(20) as pool:
            tries = [pool.submit(enter, server, "127.0.4.1", code=f"sylph_{at}") for at in range(20)]
            got = [each.result() for each in tries]
        assert sorted(got) == [*[401] * 5, *[429] * 15]
        slow = server.ask("POST", LOGIN, {"code": code}, token="", source="127.0.4.1")
        assert (slow.status, slow.kind) == (429, "too_many")
        assert 1 <= int(slow.headers["retry-after"]) <= 12
        assert server.ask("GET", LOGIN, source="127.0.4.1").status == 200, "who is in stays in"
        assert enter(server, "127.0.4.2", code=code) == 200
        spread = [enter(server, f"127.0.6.{at}", code="sylph_x") for at in range(1, 41)]
        assert 429 in spread, "all together have a limit, too"
        assert spread.count(401) <= 32
