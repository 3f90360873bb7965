"""What the server adds to each streamed token: fifty sessions that talk at once, each followed by its own client."""

import asyncio
import http.client
import json
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bench.load import Server, serving
from bench.measure import PYTHON, ROOT, Row
from bench.talker import stamp

SESSIONS, TOKENS, PER_SECOND = 50, 300, 50
# The first tokens of fifty turns that begin at once wait for the beginnings, not for the stream.
WARM = 50
STAMP = re.compile(rb'"(?:text|content)":"(\d+) "')


def rows() -> list[Row]:
    with talker() as url, serving(url) as server:
        bare = asyncio.run(_listen(url, [_direct()] * SESSIONS))
        before = server.cpu
        through = asyncio.run(_through(server))
        cpu = server.cpu - before
    wanted = SESSIONS * (TOKENS - WARM)
    found: list[Row] = []
    for name, share, bar in (("p50", 0.5, 2.0), ("p99", 0.99, None)):
        floor, all_ = _at(bare, share), _at(through, share)
        note = f"{all_:.2f} ms through the server, {floor:.2f} ms without it" if bar else ""
        found.append(
            Row(
                name=f"added to a token, {SESSIONS} streams, {name}", figure=all_ - floor, unit="ms", bar=bar, note=note
            )
        )
    found.append(Row(name="… tokens that did not arrive", figure=wanted - len(through), unit="", bar=0.5))
    found.append(
        Row(name="… CPU per token", figure=cpu / SESSIONS / TOKENS * 1e6, unit="µs", note="with the turn around them")
    )
    return found


@contextmanager
def talker() -> Generator[str]:
    command = [PYTHON, str(ROOT / "bench" / "talker.py"), str(TOKENS), str(PER_SECOND)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


async def _through(server: Server) -> list[float]:
    sessions = [json.loads(_post(server, "/api/v1/sessions", {"title": f"{n}"}))["id"] for n in range(SESSIONS)]
    asked = [_request(server.url, f"/api/v1/sessions/{id}/events?after=1", server.token) for id in sessions]

    async def go() -> None:
        await asyncio.sleep(0.5)
        for id in sessions:
            await asyncio.to_thread(_post, server, f"/api/v1/sessions/{id}/messages", {"text": "talk"})

    going = asyncio.create_task(go())
    found = await _listen(server.url, asked)
    await going
    return found


async def _listen(url: str, requests: list[bytes]) -> list[float]:
    """How long each token was on its way, in ms, as seen by one client for each request."""
    place = urlsplit(url)
    ears = [Ear(request) for request in requests]
    for ear in ears:
        await asyncio.get_running_loop().create_connection(lambda ear=ear: ear, place.hostname or "", place.port or 0)
    async with asyncio.timeout(TOKENS / PER_SECOND * 5 + 30):
        await asyncio.gather(*(ear.done.wait() for ear in ears))
    return [late for ear in ears for late in ear.late[WARM:]]


class Ear(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self.late: list[float] = []
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = stamp()
        self.late += [(now - int(said)) % 1_000_000 / 100 for said in STAMP.findall(data)]
        if b'"type":"turn.ended"' in data or b"[DONE]" in data:
            self.done.set()
            self._transport.close()


def _direct() -> bytes:
    body = b'{"stream":true}'
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def _request(url: str, path: str, token: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: {urlsplit(url).netloc}\r\nauthorization: Bearer {token}\r\n\r\n".encode()


def _post(server: Server, path: str, body: object) -> bytes:
    line = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    line.request("POST", path, json.dumps(body), headers)
    answer = line.getresponse()
    told = answer.read()
    line.close()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {told!r}")
    return told


def _at(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]
