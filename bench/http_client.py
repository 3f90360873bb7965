"""What an HTTP client costs: its import, and each piece of a stream. Prints one table of those that are installed.

    python bench/http_client.py

CPU time of this process only, so the server beside it does not count. "Paced" is a model at work, one piece every
millisecond or two; "burst" is a whole answer at once. All clients feed the same parser of server-sent events.
Imports are counted over what Sylph's core needs anyway.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from sylph.net.http_client import HttpClient
from sylph.providers.stream.sse import SseParser

SERVER = Path(__file__).parent.parent / "tests" / "model_server"
FLOOR = "asyncio, sylph.core.errors, sylph.core.provider"
PACED, BURST = 1_000, 20_000
BODY = b'{"stream":true}'
IMPORTS = {
    "ours (httptools)": "sylph.net.http_client",
    "h11": "h11",
    "httpcore": "httpcore, anyio",
    "httpx": "httpx",
    "aiohttp": "aiohttp",
}


async def ours(url: str) -> AsyncIterator[bytes]:
    client = HttpClient()
    async with client.post(url, BODY) as response:
        async for piece in response:
            yield piece
    await client.close()


async def with_h11(url: str) -> AsyncIterator[bytes]:
    h11: Any = import_module("h11")
    host, _, port = url.split("/")[2].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    connection = h11.Connection(h11.CLIENT)
    headers = [("host", host), ("content-length", str(len(BODY)))]
    path = "/" + url.split("/", 3)[3]
    writer.write(connection.send(h11.Request(method="POST", target=path, headers=headers)))
    writer.write(connection.send(h11.Data(data=BODY)) + connection.send(h11.EndOfMessage()))
    while type(event := connection.next_event()) is not h11.EndOfMessage:
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(1 << 16))
        elif type(event) is h11.Data:
            yield bytes(event.data)
    writer.close()


async def with_httpcore(url: str) -> AsyncIterator[bytes]:
    httpcore: Any = import_module("httpcore")
    async with httpcore.AsyncConnectionPool() as pool, pool.stream("POST", url, content=BODY) as response:
        async for piece in response.aiter_stream():
            yield piece


async def with_httpx(url: str) -> AsyncIterator[bytes]:
    httpx: Any = import_module("httpx")
    async with httpx.AsyncClient() as client, client.stream("POST", url, content=BODY) as response:
        async for piece in response.aiter_raw():
            yield piece


async def with_aiohttp(url: str) -> AsyncIterator[bytes]:
    aiohttp: Any = import_module("aiohttp")
    async with aiohttp.ClientSession() as session, session.post(url, data=BODY) as response:
        async for piece in response.content.iter_any():
            yield piece


CLIENTS: dict[str, Callable[[str], AsyncIterator[bytes]]] = {
    "ours (httptools)": ours,
    "h11": with_h11,
    "httpcore": with_httpcore,
    "httpx": with_httpx,
    "aiohttp": with_aiohttp,
}


async def stream_cost(client: Callable[[str], AsyncIterator[bytes]], url: str, pieces: int) -> float:
    """Microseconds of CPU for each piece."""
    parser, events = SseParser(), 0
    start = time.process_time()
    async for piece in client(url):
        events += len(parser.feed(piece))
    cost = time.process_time() - start
    assert events > pieces
    return cost / pieces * 1e6


def import_cost(modules: str, runs: int = 5) -> float:
    """Milliseconds of CPU for a Python that imports these, at best."""

    def once() -> float:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        after = getrusage(RUSAGE_CHILDREN)
        return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3

    return min(once() for _ in range(runs))


def serve(folder: Path, name: str, step: dict[str, Any]) -> tuple[subprocess.Popen[str], str]:
    script = folder / f"{name}.json"
    script.write_text(json.dumps([step]))
    command = [sys.executable, str(SERVER), "--loop", "--script", str(script)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, server.stdout.readline().strip() + "/chat/completions"


def main() -> None:
    floor = import_cost(FLOOR)
    with tempfile.TemporaryDirectory() as folder:
        paced, slow = serve(Path(folder), "paced", {"text": "x" * PACED, "chunk": 1, "delay": 0.001})
        burst, fast = serve(Path(folder), "burst", {"text": "x" * BURST, "chunk": 1})
        print(f"{'client':18} {'import ms':>10} {'paced µs':>10} {'burst µs':>10}   (the core alone: {floor:.0f} ms)")
        for name, client in CLIENTS.items():
            if any(find_spec(module.strip()) is None for module in IMPORTS[name].split(",")):
                print(f"{name:18} {'not installed':>21}")
                continue
            imported = import_cost(f"{FLOOR}, {IMPORTS[name]}") - floor
            asyncio.run(stream_cost(client, fast, BURST))  # The first run pays for what is imported late.
            each = [asyncio.run(stream_cost(client, slow, PACED)), asyncio.run(stream_cost(client, fast, BURST))]
            print(f"{name:18} {imported:>+10.0f} {each[0]:>10.0f} {each[1]:>10.1f}")
        for server in (paced, burst):
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
