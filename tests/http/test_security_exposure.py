"""Beyond this machine: only with TLS, only with a key, and with a certificate that fits."""

import hashlib
import json
import os
import pty
import select
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.http.knocking import SYLPH, Home, House, open_house
from tests.patience import PATIENCE

ME = "/api/v1/login"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").configure("")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """With a certificate of its own making, for this machine only: the tests leave it nowhere."""
    told = '[server]\ntls = "self"\nnames = ["sylph.home.example"]\nheader_seconds = 2.0\n'
    with open_house(Home(tmp_path_factory.mktemp("secure")).configure(told)) as opened:
        yield opened


def shown(server: House) -> bytes:
    """The certificate that the server shows."""
    with server.connect() as end:
        assert isinstance(end, ssl.SSLSocket)
        found = end.getpeercert(binary_form=True)
    assert found
    return found


def verified(server: House, name: str) -> bool:
    """Whether who trusts the certificate believes the server to have this name."""
    context = ssl.create_default_context(cafile=str(server.home.data / "tls" / "self.pem"))
    try:
        with (
            socket.create_connection(("127.0.0.1", server.port), 10) as plain,
            context.wrap_socket(plain, server_hostname=name),
        ):
            return True
    except ssl.SSLCertVerificationError:
        return False


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_others_are_not_served_without_tls(home: Home, host: str) -> None:
    said = home.run("serve", "--port", "0", "--host", host)
    assert said.returncode == 1
    assert "TLS" in said.stderr
    assert "--tls self" in said.stderr
    assert said.stdout == ""


def test_the_config_file_opens_nothing_either(home: Home) -> None:
    home.configure('[server]\nhost = "0.0.0.0"\nport = 0\n')
    assert "TLS" in home.run("serve").stderr
    assert "empty" in home.run("serve", "--host", "").stderr, "it would be every network there is"
    home.configure('[server]\nhost = ""\n')
    assert "server.host" in home.run("serve").stderr


def test_others_are_not_served_without_a_key(home: Home) -> None:
    """With nobody at a terminal no key is made: it would be read by nobody, or from a log."""
    said = home.run("serve", "--port", "0", "--host", "0.0.0.0", "--tls", "self")
    assert said.returncode == 1
    assert "sylph token create" in said.stderr
    home.token("short", "admin", expires="1s")
    time.sleep(1.1)
    assert home.run("serve", "--port", "0", "--host", "0.0.0.0", "--tls", "self").returncode == 1, "it has expired"


def test_with_both_the_port_is_open_and_the_door_is_not(home: Home) -> None:
    with open_house(home, "--host", "0.0.0.0", "--tls", "self") as server:
        assert server.url.startswith("https://")
        assert server.ask("GET", ME).status == 200
        assert server.ask("GET", "/api/v1/sessions", token="").status == 401
        assert server.ask("GET", ME, None, {"Host": "evil.example"}).status == 421
        host = server.url.removeprefix("https://").rpartition(":")[0]
        assert verified(server, "127.0.0.1")
        assert verified(server, host), "what others are told to use"
        assert server.ask("GET", ME, None, {"Host": f"{host}:{server.port}"}).status == 200


def test_behind_a_proxy_links_lead_to_it_and_the_cookie_stays_within_tls(home: Home) -> None:
    home.configure('[server]\nurl = "https://sylph.example"\n')
    with open_house(home) as server:
        link = server.ask("POST", "/api/v1/links", {}).json["url"]
        assert link.startswith("https://sylph.example/login#")
        proxied = {"Host": "sylph.example", "Origin": "https://sylph.example"}
        entered = server.ask("POST", ME, {"code": link.partition("#")[2]}, proxied, token="")
        assert (entered.status, "Secure" in entered.headers["set-cookie"]) == (200, True)
        cookie = {**proxied, "Cookie": entered.cookie}
        assert server.ask("POST", "/api/v1/links", {}, cookie, token="").status == 201
    home.configure('[server]\nurl = "sylph.example/path"\n')
    assert "server.url" in home.run("serve", "--port", "0").stderr


def test_host_and_port_are_read_from_the_config_file(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    home.configure(f'[server]\nhost = "127.0.0.2"\nport = {port}\n')
    process = subprocess.Popen([SYLPH, "serve"], env=home.env, cwd=home.path, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline().strip() == f"Sylph serves at http://127.0.0.2:{port}"
    process.terminate()
    process.communicate(timeout=PATIENCE)


def test_a_damaged_file_of_keys_lets_nobody_in_and_says_so(home: Home) -> None:
    home.data.mkdir(mode=0o700)
    (home.data / "keys.db").write_bytes(b"no database" * 1000)
    for said in (home.run("serve", "--port", "0"), home.run("token", "list")):
        assert (said.returncode, "keys.db" in said.stderr, "Traceback" in said.stderr) == (7, True, False)


def test_the_certificate_is_good_for_its_names_and_no_others(secure: House) -> None:
    for name in ("localhost", "127.0.0.1", "sylph.home.example"):
        assert verified(secure, name)
    assert not verified(secure, "evil.example")
    assert secure.ask("GET", ME, None, {"Host": "sylph.home.example"}).status == 200


def test_the_fingerprint_is_told(secure: House) -> None:
    digest = hashlib.sha256(shown(secure)).hexdigest().upper()
    assert secure.process.stdout
    said = next(line for line in secure.process.stdout if "fingerprint" in line).strip()
    assert said.rpartition(" ")[2].replace(":", "") == digest
    linked = secure.home.run("token", "link").stdout
    assert linked.startswith(f"{secure.url}/login#")
    assert said.rpartition(" ")[2] in linked


def test_under_tls_the_cookie_is_bound_to_it(secure: House) -> None:
    entered = secure.ask("POST", ME, {"code": secure.link()}, token="")
    said = entered.headers["set-cookie"]
    assert said.startswith("__Host-sylph=sylph_")
    assert "Secure" in said
    cookie = {"Cookie": entered.cookie}
    assert secure.ask("GET", ME, None, cookie, token="").status == 200
    plain = {"Cookie": entered.cookie.removeprefix("__Host-")}
    assert secure.ask("GET", ME, None, plain, token="").status == 401, "anybody could have set that one"
    ours, http = {"Origin": f"https://127.0.0.1:{secure.port}"}, {"Origin": f"http://127.0.0.1:{secure.port}"}
    assert secure.ask("POST", "/api/v1/links", {}, {**cookie, **ours}, token="").status == 201
    assert secure.ask("POST", "/api/v1/links", {}, {**cookie, **http}, token="").status == 403


def test_tls_is_demanded_of_its_own_name_only(secure: House) -> None:
    named = secure.ask("GET", ME, None, {"Host": "sylph.home.example"})
    assert named.headers["strict-transport-security"].startswith("max-age=")
    for host in ("localhost", "127.0.0.1"):
        assert "strict-transport-security" not in secure.ask("GET", ME, None, {"Host": host}).headers


def test_old_tls_is_refused(secure: House) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", secure.port), 10) as plain, context.wrap_socket(plain) as end:
        assert end.version() in ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize(
    ("sent", "status", "location"),
    [
        (b"GET /login?a=b HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", b"308", b"https://localhost:%d/login?a=b"),
        (b"HEAD / HTTP/1.0\r\nAccept: */*\r\nHost: [::1]\r\n\r\n", b"308", b"https://[::1]/"),
        # Nothing but looking is repeated elsewhere: what was sent in the clear is to be thought about.
        (b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400", b""),
        (b'GET / HTTP/1.1\r\nHost: a"b\r\n\r\n', b"400", b""),
        (b"GET //evil.example\tx HTTP/1.1\r\nHost: a\r\n\r\n", b"400", b""),
        (b"GET / HTTP/1.1\r\n\r\n", b"400", b""),
        (b"SSH-2.0-stranger\r\n\r\n", b"400", b""),
        (b"x" * 9000, b"400", b""),
    ],
)
def test_who_speaks_no_tls_is_told_so(secure: House, sent: bytes, status: bytes, location: bytes) -> None:
    port = secure.port
    with socket.create_connection(("127.0.0.1", port), 10) as end:
        end.sendall(sent % port if b"%d" in sent else sent)
        head, _, body = _all(end).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert json.loads(body)["kind"] == "tls_only"
    wanted = b"location: " + (location % port if b"%d" in location else location)
    assert (wanted in head.split(b"\r\n")) == bool(location)


def test_who_says_nothing_or_half_of_it_is_not_waited_for(secure: House) -> None:
    for sent in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
        with socket.create_connection(("127.0.0.1", secure.port), 8) as end:
            end.sendall(sent)
            assert _all(end) == b""
    with socket.create_connection(("127.0.0.1", secure.port), 8) as end:
        end.shutdown(socket.SHUT_WR)
        assert _all(end) == b""


def test_a_handshake_that_is_not_gone_on_with_is_given_up(secure: House) -> None:
    with socket.create_connection(("127.0.0.1", secure.port), 8) as end:
        end.sendall(b"\x16\x03\x01")
        assert _rest(end) == b""


def _all(end: socket.socket) -> bytes:
    heard = b""
    while piece := _rest(end):
        heard += piece
    return heard


def _rest(end: socket.socket) -> bytes:
    try:
        return end.recv(1000)
    except ConnectionError:
        return b""


def test_without_the_library_openssl_makes_the_certificate(home: Home, tmp_path: Path) -> None:
    (tmp_path / "cryptography").mkdir()
    (tmp_path / "cryptography" / "__init__.py").write_text("raise ImportError('hidden')")
    hidden = {"PYTHONPATH": str(tmp_path)}
    with open_house(home, "--tls", "self", **hidden) as server:
        assert verified(server, "localhost")
        assert verified(server, "127.0.0.1")
    (home.data / "tls" / "self.pem").unlink()
    said = home.run("serve", "--port", "0", "--tls", "self", PATH="/nowhere", **hidden)
    assert said.returncode == 1
    assert "cryptography" in said.stderr
    assert "openssl" in said.stderr


def made(folder: Path, *more: str) -> tuple[str, str]:
    folder.mkdir(exist_ok=True)
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=own", *more]
    subprocess.run([*words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def test_your_own_certificate(home: Home, tmp_path: Path) -> None:
    cert, key = made(tmp_path / "own", "-nodes", "-addext", "subjectAltName=DNS:own.example")
    with open_house(home, "--tls-cert", cert, "--tls-key", key, "--name", "own.example") as server:
        assert shown(server) == ssl.PEM_cert_to_DER_cert(Path(cert).read_text())
        assert server.ask("GET", ME, None, {"Host": "own.example"}).status == 200
    assert not (home.data / "tls").exists()


def test_a_certificate_that_cannot_be_used_says_why(home: Home, tmp_path: Path) -> None:
    said = home.run("serve", "--port", "0", "--tls-cert", str(tmp_path / "none.pem"))
    assert said.returncode == 1
    assert "none.pem" in said.stderr
    assert "--tls self" in said.stderr


def test_the_folder_of_the_socket_must_be_private(home: Home) -> None:
    with open_house(home) as server:
        own = home.data / "sylph.sock"
        assert own.stat().st_mode & 0o077 == 0
        assert passed_on(own, "Accept: */*")
        for said in ("Origin: http://127.0.0.1", "X-Forwarded-For: 192.0.2.1", "Sec-Fetch-Site: same-origin"):
            assert not passed_on(own, said), "somebody made it public"
        assert server.ask("GET", ME).status == 200
    home.data.chmod(0o777)
    said = home.run("serve", "--port", "0")
    assert said.returncode == 1
    assert f"chmod 700 {home.data}" in said.stderr


def passed_on(own: Path, header: str) -> bool:
    """Whether who comes by the socket is taken for the owner."""
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(str(own))
        end.sendall(f"GET {ME} HTTP/1.1\r\nHost: any\r\nConnection: close\r\n{header}\r\n\r\n".encode())
        return b'"way":"machine"' in b"".join(iter(lambda: end.recv(65_536), b""))


def test_the_first_start_in_a_terminal_shows_a_key_a_link_and_a_code(home: Home) -> None:
    """Once: the next start tells only how to get a link."""
    first = _in_terminal(home, "serve", "--port", "0", "--host", "0.0.0.0", "--tls", "self")
    assert first.count("Your key, shown this once: sylph_") == 1
    assert first.count("/login#sylph_") == 1
    assert "fingerprint" in first
    assert "▄" in first, "the code for a phone"
    second = _in_terminal(home, "serve", "--port", "0")
    assert "sylph_" not in second
    assert "sylph token link" in second
    assert "▄" not in second


def test_the_first_start_in_a_log_shows_a_link_that_is_soon_worth_nothing(home: Home) -> None:
    with open_house(home, token="") as server:
        assert server.process.stdout
        link = next(line for line in server.process.stdout if "/login#" in line)
        code = link.strip().partition("#")[2]
        assert server.ask("POST", ME, {"code": code}, token="").json["scopes"] == ["admin"]
        assert server.ask("POST", ME, {"code": code}, token="").status == 401


def _in_terminal(home: Home, *arguments: str) -> str:
    """What a person sees until nothing more is shown."""
    outer, inner = pty.openpty()
    program = str(Path(sys.executable).with_name("sylph"))
    process = subprocess.Popen(
        [program, *arguments], env=home.env, cwd=home.path, stdin=inner, stdout=inner, stderr=inner
    )
    os.close(inner)
    seen = b""
    while b"sylph token link" not in seen:
        assert select.select([outer], [], [], PATIENCE)[0], seen
        seen += os.read(outer, 65_536)
    while select.select([outer], [], [], 0.5)[0]:
        seen += os.read(outer, 65_536)
    process.terminate()
    process.wait(PATIENCE)
    os.close(outer)
    return seen.decode()
