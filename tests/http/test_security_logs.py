"""The log: whatever is sent, and however much is told, no credential is written down."""

from pathlib import Path

from tests.http.knocking import Home, open_house

ME = "/api/v1/login"


def test_no_credential_is_written_down(tmp_path: Path) -> None:
    """Not those that are good, not those that are refused, and not where they do not belong."""
    home = Home(tmp_path / "home").configure('log_level = "debug"\n')
    strange = "sylph_" + "Q7x" * 14
    with open_house(home) as house:
        code = house.link()
        cookie = house.login()
        house.ask("GET", f"/api/v1/sessions?token={house.token}")
        house.ask("GET", f"/api/v1/sessions/{strange}", token=strange)
        house.ask("POST", ME, {"code": code, "key": strange}, token="")
        house.ask("POST", ME, {"key": strange}, token="")
        house.ask("POST", ME, f'{{"key": "{strange}'.encode(), token="")
        house.ask("GET", ME, None, {"Cookie": cookie}, token="")
        house.upgrade({}, f"/ws?token={house.token}")
        house.upgrade({"Cookie": cookie}, f"/ws?key={strange}")
        house.raw(f"GET /{house.token} NONSENSE\r\nAuthorization: Bearer {house.token}\r\n\r\n".encode())
        secrets = (house.token, code, cookie.partition("=")[2], strange)
        process = house.process
        process.terminate()
        out, err = process.communicate(timeout=20)
    files = [file for file in home.path.rglob("*") if file.is_file()]
    kept = b"".join(file.read_bytes() for file in files)
    for secret in secrets:
        assert secret not in out + err
        assert secret.encode() not in kept
    assert "Traceback" not in err
