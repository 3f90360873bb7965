"""Tokens: where they may stand, which are none, what each may, and that they end."""

import sqlite3
from collections.abc import Generator
from contextlib import closing

import pytest
from tests.http.knocking import Home, House, open_house
from tests.patience import eventually_true

ME = "/api/v1/login"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("home")).configure("")) as opened:
        yield opened


@pytest.mark.parametrize(
    "query",
    ["token={}", "access_token={}", "api_key={}", "key={}", "auth=x", "TOKEN={}", "%74oken={}", "a=b&secret=x", "q={}"],
)
def test_a_token_in_an_address_is_refused(server: House, query: str) -> None:
    path = f"/api/v1/sessions?{query.format(server.token)}"
    for answer in (server.ask("GET", path, token=""), server.ask("GET", path)):
        assert (answer.status, answer.kind) == (400, "secret_in_url")
        assert server.token not in str(answer.body), "it is not said back either"
        assert answer.json["next"]


def test_a_token_in_the_address_of_a_websocket_is_refused(server: House) -> None:
    answer = server.upgrade({}, f"/ws?token={server.token}")
    assert (answer.status, answer.kind) == (400, "secret_in_url")


@pytest.mark.parametrize(
    "token",
    [
        "undefined", "null", "None", "changeme", "CHANGEME", "your-token-here", "<token>", "${SYLPH_TOKEN}", "xxxx",
        "sylph_", "sylph_xxxxxxxx", "[object Object]", "{{token}}", "%SYLPH_TOKEN%", "secret", "******",
    ],
)  # fmt: skip
def test_a_placeholder_is_no_token(server: House, token: str) -> None:
    answer = server.ask("GET", ME, token=token)
    assert (answer.status, answer.kind) == (401, "placeholder_token")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "head", ["", "Bearer", "Bearer ", "bearer  ", "Basic dXNlcjpwYXNz", "Bearer sylph_", "Token x", "Bearer \xff\xfe"]
)
def test_an_empty_or_foreign_credential_is_never_taken_for_none(server: House, head: str) -> None:
    """Not even where nothing is asked of who comes without: a program that lost its token should know."""
    for path in (ME, "/api/v1/health/live"):
        assert server.ask("GET", path, None, {"Authorization": head}, source="127.0.0.4").status == 401


def test_nearly_right_is_wrong(server: House) -> None:
    good = server.token
    for wrong in (good[:-1], good + "A", good.lower(), good.removeprefix("sylph_"), f"{good}\x00", f"{good} {good}"):
        assert server.ask("GET", ME, None, {"Authorization": f"Bearer {wrong}"}, source="127.0.0.9").status in (
            400,
            401,
        )
    assert server.ask("GET", ME).status == 200


def test_two_tokens_at_once_are_refused(server: House) -> None:
    head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\nAuthorization: Bearer undefined\r\n"
    assert server.raw(f"GET {ME} HTTP/1.1\r\n{head}\r\n".encode()).status == 400


def test_wrong_tokens_get_slow_and_right_ones_do_not_notice(server: House) -> None:
    tried = [server.ask("GET", ME, token=f"sylph_{number:043}", source="127.0.0.8") for number in range(25)]
    assert tried[0].status == 401
    assert (tried[-1].status, int(tried[-1].headers["retry-after"])) == (429, 1)
    assert server.ask("GET", ME, source="127.0.0.8").status == 200


@pytest.mark.parametrize("scope", ["read", "chat", "approve", "hook"])
def test_a_token_may_what_its_scopes_say_and_no_more(server: House, scope: str) -> None:
    token = server.home.token("narrow", scope)
    assert server.ask("GET", ME, token=token).json["scopes"] == [scope]
    assert server.ask("GET", "/api/v1/sessions", token=token).status == (200 if scope == "read" else 403)
    for method, path in (("GET", "/api/v1/keys"), ("POST", "/api/v1/keys"), ("POST", "/api/v1/links")):
        refused = server.ask(method, path, {"name": "more"} if method == "POST" else None, token=token)
        assert refused.status == 403, "nobody makes keys for himself"


def test_a_hook_is_never_the_owner(server: House) -> None:
    hook = server.home.token("github", "hook")
    assert server.ask("POST", "/api/v1/sessions", {}, token=hook).status == 403
    assert server.ask("POST", ME, {"key": hook}, token="", source="127.0.0.7").status == 403
    made = server.ask("POST", "/api/v1/keys", {"name": "both", "scopes": ["hook", "admin"]})
    assert made.status == 400
    assert server.home.run("token", "create", "both", "--scope", "hook", "--scope", "read").returncode == 2


def test_keys_over_the_api(server: House) -> None:
    made = server.ask("POST", "/api/v1/keys", {"name": "laptop", "scopes": ["read"], "expires_in": 3600})
    assert made.status == 201
    key, token = made.json["key"], made.json["token"]
    assert server.ask("GET", "/api/v1/sessions", token=token).status == 200
    listed = server.ask("GET", "/api/v1/keys")
    assert key["id"] in [each["id"] for each in listed.json["items"]]
    assert token not in listed.body.decode()
    one = server.ask("GET", f"/api/v1/keys/{key['id']}").json
    assert one["used"] >= one["created"]
    assert one["expires"] == one["created"] + 3_600_000
    assert server.ask("DELETE", f"/api/v1/keys/{key['id']}").status == 204
    assert server.ask("GET", "/api/v1/sessions", token=token).status == 401
    assert server.ask("DELETE", f"/api/v1/keys/{key['id']}").status == 404
    assert server.ask("GET", f"/api/v1/keys/{key['id']}").status == 404


@pytest.mark.parametrize(
    "body",
    [
        {}, {"name": ""}, {"name": "x" * 101}, {"name": "a\nb"}, {"name": "a\x1b[2J"}, {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]}, {"name": "x", "scopes": "admin"}, {"name": "x", "expires_in": -1},
        {"name": "x", "expires_in": 1e300}, {"name": "x", "more": 1}, [], "x", None,
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_made_says_why(server: House, body: object) -> None:
    answer = server.ask("POST", "/api/v1/keys", body)
    assert (answer.status, bool(answer.json["detail"]), bool(answer.json["next"])) == (400, True, True)


def test_a_token_ends_when_it_was_to_end(server: House) -> None:
    token = server.ask("POST", "/api/v1/keys", {"name": "short", "expires_in": 4}).json["token"]
    assert server.ask("GET", ME, token=token).status == 200
    eventually_true(lambda: server.ask("GET", ME, token=token, source="127.0.0.6").status == 401)
    assert "short" not in server.ask("GET", "/api/v1/keys").body.decode()


def test_the_command_line_makes_lists_and_revokes(server: House) -> None:
    home = server.home
    made = home.run("token", "create", "cli", "--scope", "read", "--scope", "chat", "--expires", "30d", "--json")
    assert '"token"' in made.stdout
    token = home.token("gone", "read")
    assert server.ask("GET", "/api/v1/sessions", token=token).status == 200
    (row,) = (line.split() for line in home.run("token", "list").stdout.splitlines() if " gone " in line)
    assert home.run("token", "revoke", row[0]).returncode == 0
    assert server.ask("GET", "/api/v1/sessions", token=token).status == 401, "at once, in the running server"
    assert home.run("token", "revoke", row[0]).returncode == 1
    for span in ("0d", "soon", "-1d", "99999999d"):
        assert home.run("token", "create", "never", "--expires", span).returncode == 2


def test_the_file_of_the_keys_gives_nothing_away(server: House) -> None:
    cookie = server.login(source="127.0.0.5").partition("=")[2]
    files = [file for file in server.home.data.iterdir() if file.is_file()]
    kept = b"".join(file.read_bytes() for file in files)
    for secret in (server.token, cookie):
        assert secret.encode() not in kept
    assert all(file.stat().st_mode & 0o077 == 0 for file in files if file.name.startswith("keys.db"))
    with closing(sqlite3.connect(server.home.data / "keys.db")) as base:
        assert all(len(row[0]) == 32 for row in base.execute("select hash from key"))
