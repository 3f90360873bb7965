"""The log: whatever is sent, and however much is told, no credential is written down."""

from pathlib import Path

from tests.http.knocking import Home, open_house
from tests.patience import PATIENCE

ME = "/api/v1/login"


def test_no_credential_is_written_down(tmp_path: Path) -> None:
    """Not those that are good, not those that are refused, and not where they do not belong."""
    home = Home(tmp_path / "home").configure('log_level = "debug"\n')
    strange = "sylph_" + "Q7x" * 14
    with open_house(home) as server:
        code = server.link()
        cookie = server.login()
        server.ask("GET", f"/api/v1/sessions?token={server.token}")
        server.ask("GET", f"/api/v1/sessions/{strange}", token=strange)
        server.ask("POST", ME, {"code": code, "key": strange}, token="")
        server.ask("POST", ME, {"key": strange}, token="")
        server.ask("POST", ME, f'{{"key": "{strange}'.encode(), token="")
        server.ask("GET", ME, None, {"Cookie": cookie}, token="")
        server.upgrade({}, f"/ws?token={server.token}")
        server.upgrade({"Cookie": cookie}, f"/ws?key={strange}")
        server.raw(f"GET /{server.token} NONSENSE\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
        secrets = (server.token, code, cookie.partition("=")[2], strange)
        process = server.process
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    files = [file for file in home.path.rglob("*") if file.is_file()]
    kept = b"".join(file.read_bytes() for file in files)
    for secret in secrets:
        assert secret not in out + err
        assert secret.encode() not in kept
    assert "Traceback" not in err
