"""A running server and a client that says exactly what it is told to: also what no honest client would say."""

import json
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

SYLPH = str(Path(sys.executable).with_name("sylph"))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes = field(repr=False, default=b"")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        return self.json["kind"]

    @property
    def cookie(self) -> str:
        """What a browser would send back."""
        return self.headers["set-cookie"].partition(";")[0]


@dataclass
class Home:
    """A home of its own, and the programs started in it."""

    path: Path

    def configure(self, text: str) -> "Home":
        (self.path / "sylph").mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.path / "sylph" / "config.toml").write_text(f"probe = false\n{text}")
        return self

    @property
    def data(self) -> Path:
        return self.path / "sylph" / "data"

    @property
    def env(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "COVERAGE_PROCESS_START") if key in os.environ}
        return {**kept, "HOME": str(self.path), "SYLPH_HOME": str(self.path / "sylph"), "TERM": "xterm"}

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SYLPH, *arguments],
            env={**self.env, **env},
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def token(self, name: str = "tests", *scopes: str, expires: str = "") -> str:
        words = [word for scope in scopes or ("admin",) for word in ("--scope", scope)]
        made = self.run("token", "create", name, *words, *(["--expires", expires] if expires else []))
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()


@dataclass
class House:
    home: Home
    url: str
    token: str
    said: list[str]
    process: "subprocess.Popen[str]" = field(repr=False)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def origin(self) -> str:
        return self.url

    def connect(self, *, source: str = "", seconds: float = PATIENCE) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), seconds, (source, 0) if source else None)
        if not self.url.startswith("https"):
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(plain, server_hostname="localhost")

    def raw(self, data: bytes, *, source: str = "") -> Answer:
        """Sends bytes as they are and reads one answer."""
        with self.connect(source=source) as end:
            end.sendall(data)
            return read(end)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        source: str = "",
    ) -> Answer:
        """`token` is the tests' own unless said; empty for none."""
        token = self.token if token is None else token
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        told = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        told |= {"Authorization": f"Bearer {token}"} if token else {}
        told |= {"Content-Type": "application/json", "Content-Length": str(len(data))} if body is not None else {}
        # What a test says counts, and nothing stands there twice.
        low = {name.lower() for name in headers or {}}
        told = {name: value for name, value in told.items() if name.lower() not in low} | dict(headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        return self.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + data, source=source)

    def link(self) -> str:
        """The code of a new one-time link."""
        return self.ask("POST", "/api/v1/links", {}).json["url"].partition("#")[2]

    def login(self, source: str = "") -> str:
        """The cookie of a new login."""
        entered = self.ask("POST", "/api/v1/login", {"code": self.link()}, token="", source=source)
        assert entered.status == 200, entered
        return entered.cookie

    def upgrade(self, headers: Mapping[str, str], path: str = "/ws") -> Answer:
        """What a WebSocket handshake is answered."""
        return self.raw(self.handshake(headers, path))

    def handshake(self, headers: Mapping[str, str], path: str = "/ws") -> bytes:
        told = {
            "Host": f"127.0.0.1:{self.port}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1")


def read(end: socket.socket) -> Answer:
    """One answer, to its end."""
    got = b""
    while b"\r\n\r\n" not in got:
        if not (more := end.recv(65_536)):
            break
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    assert len(lines[0].split()) >= 2, got
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", "0"))
    while len(body) < length and (more := end.recv(65_536)):
        body += more
    return Answer(int(lines[0].split()[1]), headers, body, got)


@contextmanager
def open_house(home: Home, *arguments: str, token: str | None = None, **env: str) -> Generator[House]:
    """The server on any free port, ended at the end."""
    token = home.token() if token is None else token
    process = subprocess.Popen(
        [SYLPH, "serve", *(() if "--port" in arguments else ("--port", "0")), *arguments],
        env={**home.env, **env},
        cwd=home.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield _opened(home, process, token)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
        # A server that shows a traceback made a mistake, whatever it answered.
        assert "Traceback" not in said, said


def _opened(home: Home, process: "subprocess.Popen[str]", token: str) -> House:
    assert process.stdout and process.stderr
    first = process.stdout.readline()
    found = re.search(r"https?://\S+", first)
    assert found, f"{first}{process.stderr.read()}"
    return House(home, found.group(), token, [first.strip()], process)
