"""A stream ends with the credential that opened it: what was revoked hears nothing more."""

import socket
from collections.abc import Generator

import pytest
from tests.http.knocking import Home, House, open_house
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    # A model that is never asked.
    known = {"OPENAI_API_KEY": "a-key-for-tests", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with open_house(Home(tmp_path_factory.mktemp("home")).configure(""), **known) as opened:
        yield opened


@pytest.fixture(scope="module")
def session(server: House) -> str:
    made = server.ask("POST", "/api/v1/sessions", {"model": "openai/scripted"})
    assert made.status == 201, made
    return made.json["id"]


def follow(server: House, session: str, credential: str) -> socket.socket:
    end = server.connect()
    path = f"/api/v1/sessions/{session}/events"
    end.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{credential}\r\n\r\n".encode())
    assert end.recv(65_536).startswith(b"HTTP/1.1 200")
    return end


def ended(end: socket.socket) -> bytes:
    """What still came until the stream was ended in good order."""
    end.settimeout(PATIENCE)
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        more = end.recv(65_536)
        assert more, got
        got += more
    return got


def quiet(end: socket.socket) -> bool:
    """Whether it still stands."""
    end.settimeout(2.5)
    try:
        return not end.recv(65_536).endswith(b"0\r\n\r\n")
    except TimeoutError:
        return True


def test_a_stream_ends_when_its_token_is_revoked(server: House, session: str) -> None:
    made = server.ask("POST", "/api/v1/keys", {"name": "follower"}).json
    with (
        follow(server, session, f"Authorization: Bearer {made['token']}") as end,
        follow(server, session, f"Authorization: Bearer {server.token}") as other,
    ):
        assert server.ask("DELETE", f"/api/v1/keys/{made['key']['id']}").status == 204
        ended(end)
        assert quiet(other), "those of others stay"


def test_a_stream_ends_with_the_login(server: House, session: str) -> None:
    cookie = server.login()
    with follow(server, session, f"Cookie: {cookie}") as end:
        left = server.ask("DELETE", "/api/v1/login", None, {"Cookie": cookie, "Origin": server.origin}, token="")
        assert left.status == 204
        ended(end)


def test_a_stream_ends_when_its_token_expires(server: House, session: str) -> None:
    token = server.ask("POST", "/api/v1/keys", {"name": "short", "expires_in": 4}).json["token"]
    with follow(server, session, f"Authorization: Bearer {token}") as end:
        ended(end)


def test_a_stream_ends_when_the_command_line_revokes(server: House, session: str) -> None:
    made = server.ask("POST", "/api/v1/keys", {"name": "elsewhere"}).json
    with follow(server, session, f"Authorization: Bearer {made['token']}") as end:
        assert server.home.run("token", "revoke", made["key"]["id"]).returncode == 0
        ended(end)


def test_a_websocket_ends_when_its_token_is_revoked(server: House) -> None:
    made = server.ask("POST", "/api/v1/keys", {"name": "socket", "scopes": ["read"]}).json
    with server.connect() as end:
        end.sendall(server.handshake({"Authorization": f"Bearer {made['token']}"}))
        assert end.recv(65_536).startswith(b"HTTP/1.1 101")
        assert server.ask("DELETE", f"/api/v1/keys/{made['key']['id']}").status == 204
        end.settimeout(PATIENCE)
        got = b""
        while b"\x03\xf0" not in got:
            more = end.recv(65_536)
            assert more, got
            got += more
    assert b"\x88" in got, "closed in good order, by 1008"
