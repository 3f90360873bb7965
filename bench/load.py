"""Many sessions at once through the real server: how many model calls a second, at what CPU and memory."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench.measure import PYTHON, ROOT, SYLPH, Row, environment, home

ROUNDS = 10
TICK = os.sysconf("SC_CLK_TCK")
CONFIG = "probe = false\n[limits]\nconcurrency = 200\n"


def rows() -> list[Row]:
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    found: list[Row] = []
    floor = await _floor(200)
    for sessions in (50, 200):
        with model("read", {"path": "notes.txt"}) as url, serving(url) as server:
            idle = server.memory
            load = await _drive(server, sessions)
        calls = sessions * (ROUNDS + 1)
        failed = load.sessions - load.completed
        name = f"{sessions} sessions of {ROUNDS} tool rounds"
        found += [
            Row(name=f"{name}, calls/s", figure=calls / load.wall, unit="/s", floor=floor, bar=250, more=True),
            Row(name="… CPU per model call", figure=load.cpu / calls * 1000, unit="ms", bar=4),
            Row(name="… sessions that failed", figure=failed, unit="", bar=0.5),
            Row(name="… memory", figure=load.memory, unit="MB", bar=200),
        ]
    found.append(Row(name="idle server, memory", figure=idle, unit="MB", bar=90))
    found.append(Row(name="sylph serve, ready after", figure=await _ready(), unit="s", bar=0.7))
    with model("shell", {"command": "echo hello"}) as url, serving(url, "trust") as server:
        load = await _drive(server, 50)
    calls = 50 * (ROUNDS + 1)
    found.append(Row(name="50 sessions, a sandboxed command a round", figure=calls / load.wall, unit="calls/s"))
    return found


class Load(Struct, frozen=True):
    sessions: int
    completed: int
    wall: float
    cpu: float
    memory: float


class Server(Struct, frozen=True):
    url: str
    token: str
    pid: int

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(int(field) for field in fields[11:15]) / TICK

    @property
    def memory(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def model(tool: str, arguments: dict[str, str]) -> Generator[str]:
    command = [PYTHON, str(ROOT / "bench" / "model.py"), str(ROUNDS), tool, json.dumps(arguments)]
    with _printing(command, dict(os.environ)) as (_, line):
        yield line


@contextmanager
def serving(url: str, mode: str = "ask", before: Callable[[Path], None] | None = None) -> Generator[Server]:
    with home() as folder:
        (folder / "home" / "data").mkdir(parents=True, mode=0o700)
        if before:
            before(folder / "home" / "data")
        (folder / "home" / "config.toml").write_text(f'mode = "{mode}"\nmodel = "openai/m"\n{CONFIG}')
        (folder / "work").mkdir()
        (folder / "work" / "notes.txt").write_text("A line of notes.\n" * 20)
        env = environment(folder, url)
        made = subprocess.run(
            [SYLPH, "token", "create", "bench", "--scope", "admin", "--json"], env=env, capture_output=True, check=True
        )
        token = json.loads(made.stdout)["token"]
        with _printing([SYLPH, "serve", "--port", "0"], env, folder / "work") as (pid, line):
            yield Server(line.rpartition(" ")[2], token, pid)


@contextmanager
def _printing(command: list[str], env: dict[str, str], cwd: Path | None = None) -> Generator[tuple[int, str]]:
    """A program until its first line with an address."""
    process = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout
        line = next(line.strip() for line in process.stdout if "http://" in line or "https://" in line)
        yield process.pid, line
    finally:
        process.terminate()
        process.communicate()


async def _drive(server: Server, sessions: int) -> Load:
    made = [await _ask(server, "POST", "/api/v1/sessions", {"title": f"load {number}"}) for number in range(sessions)]
    before, began = server.cpu, time.perf_counter()
    outcomes = await asyncio.gather(*(_session(server, json.loads(one)["id"]) for one in made))
    wall, cpu, memory = time.perf_counter() - began, server.cpu - before, server.memory
    return Load(sessions, outcomes.count("finished"), wall, cpu, memory)


async def _session(server: Server, id: str) -> str:
    """Says something, follows the stream to the end of the turn, and tells how it ended."""
    await _ask(server, "POST", f"/api/v1/sessions/{id}/messages", {"text": "go and do it"})
    reader, writer = await _send(server, "GET", f"/api/v1/sessions/{id}/events", b"")
    try:
        async for line in reader:
            if line.startswith(b"data: ") and b'"type":"turn.ended"' in line:
                return json.loads(line[6:])["data"].get("outcome", "")
    finally:
        writer.close()
    return "cut"


async def _ask(server: Server, method: str, path: str, body: object) -> bytes:
    reader, writer = await _send(server, method, path, json.dumps(body).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    answer = await reader.readexactly(length)
    writer.close()
    if not head.startswith(b"HTTP/1.1 20"):
        raise RuntimeError(f"{method} {path}: {head!r} {answer!r}")
    return answer


async def _send(
    server: Server, method: str, path: str, body: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host = server.url.removeprefix("http://")
    name, _, port = host.rpartition(":")
    reader, writer = await asyncio.open_connection(name, int(port), limit=2**22)
    writer.write(
        f"{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {server.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return reader, writer


async def _ready() -> float:
    """From the start of the program to the first answer, the best of three."""
    return min([await _once() for _ in range(3)])


async def _once() -> float:
    with home() as folder:
        (folder / "home").mkdir()
        (folder / "home" / "config.toml").write_text(CONFIG)
        began = time.perf_counter()
        with _printing([SYLPH, "serve", "--port", "0"], environment(folder), folder) as (pid, line):
            reader, writer = await _send(Server(line.rpartition(" ")[2], "", pid), "GET", "/api/v1/health/ready", b"")
            await reader.readuntil(b"\r\n\r\n")
            took = time.perf_counter() - began
            writer.close()
    return took


async def _floor(sessions: int) -> float:
    """The same calls over raw asyncio: no log, no policy, nothing kept."""
    with model("read", {"path": "notes.txt"}) as url:
        host = url.removeprefix("http://").removesuffix("/v1")
        began = time.perf_counter()
        await asyncio.gather(*(_bare(host) for _ in range(sessions)))
        return sessions * (ROUNDS + 1) / (time.perf_counter() - began)


async def _bare(host: str) -> None:
    name, _, port = host.rpartition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    messages: list[object] = [{"role": "user", "content": "go and do it"}]
    for number in range(ROUNDS + 1):
        body = json.dumps({"model": "m", "stream": True, "messages": messages}, separators=(",", ":")).encode()
        writer.write(
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        told = await reader.readexactly(int(head.rpartition(b"content-length: ")[2]))
        for line in told.split(b"\n\n"):
            if line.startswith(b"data: {"):
                json.loads(line[6:])
        messages.append({"role": "assistant", "content": "", "tool_calls": [{"id": f"call_{number}"}]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "A line of notes.\n" * 20})
    writer.close()
