"""Methods, codings and limits: what a path takes is told, and what is documented holds."""

import json
from collections.abc import Generator

import pytest
from tests.http.knocking import Home, House, open_house

SESSIONS = "/api/v1/sessions"
LOGS = "sylph/data/logs/server.log"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("methods")).configure("")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        (SESSIONS, "GET, HEAD, OPTIONS, POST"),
        (f"{SESSIONS}/none", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        (f"{SESSIONS}/none/messages", "OPTIONS, POST"),
        ("/login", "GET, HEAD, OPTIONS"),
    ],
)
def test_all_methods_of_a_path_are_told(server: House, path: str, methods: str) -> None:
    refused = server.ask("PUT", path, {})
    assert (refused.status, refused.kind, refused.headers["allow"]) == (405, "bad_method", methods)
    assert refused.json["next"]
    asked = server.ask("OPTIONS", path, token="")
    assert (asked.status, asked.headers["allow"], asked.body) == (204, methods, b"")


def test_a_head_is_a_get_without_its_body(server: House) -> None:
    got = server.ask("GET", "/login")
    with server.connect() as end:
        end.sendall(b"HEAD /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head = b"".join(iter(lambda: end.recv(65_536), b""))
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-length: %d\r\n" % len(got.body) in head.lower()
    assert head.endswith(b"\r\n\r\n")
    assert server.ask("HEAD", f"{SESSIONS}/none").status == 404
    assert server.ask("HEAD", SESSIONS, token="").status == 401


def test_a_head_of_a_stream_ends(server: House) -> None:
    with server.connect() as end:
        end.sendall(
            f"HEAD /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        head = b"".join(iter(lambda: end.recv(65_536), b""))
    assert b"text/event-stream" in head
    assert head.endswith(b"\r\n\r\n")


def test_what_is_nowhere_says_where_to_look(server: House) -> None:
    answer = server.ask("GET", "/api/v1/nothing")
    assert (answer.status, answer.kind) == (404, "not_found")
    assert answer.json["next"]


@pytest.mark.parametrize("coding", ["gzip", "br", "nonsense"])
def test_a_body_in_a_coding_is_not_read(server: House, coding: str) -> None:
    answer = server.ask("POST", SESSIONS, {}, {"Content-Encoding": coding})
    assert (answer.status, answer.kind) == (415, "encoded")
    assert server.ask("POST", "/api/v1/login", {"code": "x"}, {"Content-Encoding": "identity"}).status == 401


def test_a_head_that_comes_at_once_is_measured_as_well(server: House) -> None:
    assert server.ask("GET", "/login", headers={"X-Long": "a" * 60_000}).status == 200
    for headers in ({"X-Long": "a" * 66_000}, {f"X-{at}": "a" * 900 for at in range(75)}):
        answer = server.ask("GET", "/login", headers=headers)
        assert (answer.status, answer.kind) == (431, "too_large")


@pytest.mark.parametrize("path", ["/api/v1/tasks", f"{SESSIONS}/none/messages", "/v1/chat/completions"])
def test_a_message_is_not_as_large_as_an_upload(server: House, path: str) -> None:
    answer = server.ask("POST", path, b"{}", {"Content-Length": "41000001"})
    assert answer.status == 413
    assert b"41,000,000 bytes" in answer.body


def test_a_refused_websocket_is_no_error_of_the_servers(server: House) -> None:
    assert server.upgrade({}).status == 401
    assert server.upgrade({"Authorization": f"Bearer {server.token}"}, "/nowhere").status == 404
    lines = [json.loads(line) for line in (server.home.path / LOGS).read_text().splitlines()]
    assert not [line for line in lines if line["level"] == "error"]


def test_a_scope_that_is_none_is_named(server: House) -> None:
    said = server.home.run("token", "create", "x", "--scope", "foo")
    assert said.returncode
    assert "'foo' is no scope" in said.stderr
    assert "read, chat, approve, admin, hook" in said.stderr
    answer = server.ask("POST", "/api/v1/keys", {"name": "x", "scopes": ["foo"]})
    assert 400 <= answer.status < 500


def test_a_second_token_of_a_name_is_pointed_out_and_the_list_tells_when(server: House) -> None:
    first = server.home.run("token", "create", "twin")
    second = server.home.run("token", "create", "twin")
    assert (first.stderr, "another token named 'twin'" in second.stderr) == ("", True)
    assert second.stdout.startswith("sylph_")
    listed = server.home.run("token", "list", COLUMNS="200").stdout.splitlines()
    assert listed[0].split() == ["id", "kind", "name", "scopes", "made", "used", "ends"]
    assert sum(" twin " in line for line in listed) == 2


def test_the_login_leads_back_to_the_page_that_asked_for_it(server: House) -> None:
    sent = server.ask("GET", "/docs", token="")
    assert (sent.status, sent.headers["location"]) == (303, "/login?next=/docs")
