"""Too much, too slow, too many: what comes over the wire is bounded, and whoever overdoes it is told so."""

import json
import socket
from collections.abc import Generator
from contextlib import suppress

import pytest
from tests.http.knocking import Home, House, open_house, read
from tests.patience import eventually_true

LOGIN = "/api/v1/login"
TOLD = "[server]\nbody_mb = 0.1\nbody_seconds = 1.0\nheader_seconds = 1.0\nconnections = 20\n"

POST = b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("home")).configure(TOLD)) as opened:
        yield opened


def head(server: House, *more: str, method: str = "POST", path: str = "/api/v1/sessions") -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {server.token}", *more, "", "")
    return "\r\n".join(lines).encode()


def alive(server: House) -> bool:
    return server.ask("GET", LOGIN).status == 200


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(server: House) -> None:
    with server.connect() as end:
        end.sendall(head(server, "Content-Length: 99999999999", "Content-Type: application/json"))
        answer = read(end)
    assert (answer.status, answer.kind) == (413, "too_large")
    assert answer.json["details"] == {"most": "100000"}


@pytest.mark.parametrize("length", ["100001", "99999999999999999999999999", "-1", "1x", "0x10", "+5", "1,2"])
def test_a_length_that_is_none_is_refused(server: House, length: str) -> None:
    answer = server.raw(
        head(server, "Content-Type: application/json").replace(
            b"\r\n\r\n", f"\r\nContent-Length: {length}\r\n\r\n{{}}".encode()
        )
    )
    assert answer.status in (400, 413)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_in_chunks_is_counted_as_it_comes(server: House) -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    with server.connect() as end:
        end.sendall(head(server, "Transfer-Encoding: chunked", "Content-Type: application/json"))
        end.sendall(chunk * 30)
        answer = read(end)
    assert (answer.status, answer.kind) == (413, "too_large")
    assert alive(server)


def test_a_body_of_just_the_size_is_taken(server: House) -> None:
    body = json.dumps({"code": "x"}).encode()
    assert server.ask("POST", LOGIN, body + b" " * (100_000 - len(body)), token="", source="127.0.7.1").status == 401
    assert server.ask("POST", LOGIN, body + b" " * (100_001 - len(body)), token="", source="127.0.7.1").status == 413


def test_after_the_answer_nobody_goes_on_sending(server: House) -> None:
    """The rest of a refused body is let come for a while, then the connection is closed."""
    with server.connect() as end:
        end.sendall(head(server, "Content-Length: 999999999", "Content-Type: application/json"))
        assert read(end).status == 413
        eventually_true(lambda: _cut(end), "the end of the connection")
    assert alive(server)


def _cut(end: socket.socket) -> bool:
    try:
        end.sendall(b" " * 1000)
    except OSError:
        return True
    return False


def test_a_body_that_trickles_is_given_up(server: House) -> None:
    """A byte now and then does not keep it alive."""
    with server.connect() as end:
        end.sendall(head(server, "Content-Length: 1000", "Content-Type: application/json"))
        end.settimeout(0.3)
        got = b""
        # The head and the body may come one after the other. It would take 1000 bytes, and never has them.
        for _ in range(900):
            if b"too_slow" in got:
                break
            try:
                end.sendall(b" ")
                got += end.recv(65_536)
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert b" 408 " in got.partition(b"\r\n")[0]
    assert b"too_slow" in got


def test_a_head_that_trickles_is_given_up(server: House) -> None:
    with server.connect() as end:
        end.settimeout(0.2)
        got, said = b"", iter(b"GET /login HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 90)
        while not got:
            end.sendall(bytes([next(said)]))
            try:
                got = end.recv(65_536)
            except TimeoutError:
                continue
    assert b" 408 " in got.partition(b"\r\n")[0]


@pytest.mark.parametrize("first", [b"", b"\r\n", b"G"])
def test_a_connection_that_says_nothing_is_closed(server: House, first: bytes) -> None:
    with server.connect() as end:
        end.sendall(first)
        answer = read(end)
    assert answer.status == 408


def test_a_second_head_must_not_trickle_either(server: House) -> None:
    with server.connect() as end:
        end.sendall(head(server, method="GET", path=LOGIN))
        assert read(end).status == 200
        end.sendall(b"GET /logi")
        assert read(end).status == 408


@pytest.mark.parametrize(
    "line", [b"X: " + b"a" * 200_000, b"\r\n".join(b"X-%d: 1" % at for at in range(20_000)), b"A" * 100_000 + b": 1"]
)
def test_a_head_that_is_too_large_is_refused(server: House, line: bytes) -> None:
    with server.connect() as end:
        with suppress(OSError):
            end.sendall(b"GET /login HTTP/1.1\r\nHost: localhost\r\n" + line)
        answer = read(end)
    assert (answer.status, answer.kind) == (431, "too_large")
    assert alive(server)


@pytest.mark.parametrize(
    "request_",
    [
        POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /login HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /login HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"NONSENSE\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_is_read_in_none(server: House, request_: bytes) -> None:
    answer = server.raw(request_)
    assert 400 <= answer.status < 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_there_are_not_more_connections_than_allowed(server: House) -> None:
    eventually_true(lambda: alive(server))
    held = [server.connect() for _ in range(24)]
    try:
        got = [end.recv(65_536) for end in held[-2:]]
        assert all(b" 503 " in each for each in got), got
    finally:
        for end in held:
            end.close()
    eventually_true(lambda: _alive(server))


def _alive(server: House) -> bool:
    try:
        return alive(server)
    except OSError:
        return False


def test_one_credential_may_ask_so_often_and_no_more(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home(tmp_path_factory.mktemp("rates")).configure("[server]\nrequests = 2.0\n")
    other = home.token("other", "read")
    with open_house(home) as server:
        got = [server.ask("GET", LOGIN) for _ in range(20)]
        assert [answer.status for answer in got][:8] == [200] * 8
        assert (got[-1].status, got[-1].kind, got[-1].headers["retry-after"]) == (429, "too_many", "1")
        assert server.ask("GET", LOGIN, token=other).status == 200, "others do not notice"
        eventually_true(lambda: server.ask("GET", LOGIN).status == 200)
        strangers = [server.ask("GET", "/login", token="", source="127.0.8.1").status for _ in range(400)]
        assert 429 in strangers
        assert server.ask("GET", "/login", token="", source="127.0.8.2").status == 200
