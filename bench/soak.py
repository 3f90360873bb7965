"""Leaves a real server under mixed load for long, and looks whether it grows: `python -m bench.soak [MINUTES]`.

Sessions are made, work with tools and are left; streams of one session, of all, and WebSockets are opened and cut in
the middle; now and then nothing happens at all.
"""

import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import linear_regression, mean
from urllib.parse import urlsplit

from msgspec import Struct
from websockets.asyncio.client import connect

from bench.load import Server, model, serving

MINUTES = 10.0
EVERY = 10.0
# So many seconds of load, then so many of rest.
BUSY, REST = 40.0, 10.0
WORKERS = 6
# Older sessions are left alone: one that grows for ever may well take more memory for ever.
LATEST = 20
# More than this over ten minutes is not flat.
GROWTH_MB, GROWTH_FDS = 10.0, 10.0


class Sample(Struct, frozen=True):
    at: float
    memory: float
    fds: int
    threads: int
    cpu: float
    sessions: int
    turns: int


class Soak:
    def __init__(self, server: Server, seconds: float) -> None:
        self._server, self._seconds = server, seconds
        self._began = time.monotonic()
        self._chance = random.Random(1)
        self.sessions: list[str] = []
        self.turns = 0
        self.samples: list[Sample] = []
        self.refused: list[str] = []

    async def run(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds), asyncio.TaskGroup() as group:
                group.create_task(self._sample())
                for _ in range(WORKERS):
                    group.create_task(self._work())
                group.create_task(self._look())
                group.create_task(self._talk())

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    async def _breathe(self) -> None:
        """Waits through the times of rest."""
        into = self._elapsed % (BUSY + REST)
        await asyncio.sleep(BUSY + REST - into if into > BUSY else 0)

    async def _work(self) -> None:
        while True:
            await self._breathe()
            try:
                await self._turn()
            except RuntimeError as error:
                self.refused.append(str(error))

    async def _turn(self) -> None:
        """New sessions and old ones, each followed by a stream that is cut and comes back."""
        if len(self.sessions) < LATEST or self._chance.random() < 0.1:
            made = await _ask(self._server, "POST", "/api/v1/sessions", {"title": "soak"})
            self.sessions.append(json.loads(made)["id"])
        session = self._chance.choice(self.sessions[-LATEST:])
        seq = json.loads(await _ask(self._server, "GET", f"/api/v1/sessions/{session}", None))["seq"]
        await _ask(self._server, "POST", f"/api/v1/sessions/{session}/messages", {"text": "go on"})
        await self._follow(session, seq)
        await _ask(self._server, "GET", "/api/v1/sessions?limit=20", None)

    async def _follow(self, session: str, after: int) -> None:
        """To the end of the next turn, however often that takes."""
        last, coming = str(after), str(after)
        while True:
            patience = self._chance.choice((5, 30, 10_000))
            reader, writer = await _send(self._server, "GET", f"/api/v1/sessions/{session}/events?after={last}", None)
            try:
                async for line in reader:
                    # An event is there when it is whole: cut in the middle, it has to come again.
                    coming = line[4:].decode().strip() if line.startswith(b"id: ") else coming
                    last = coming if line == b"\n" else last
                    if line.startswith(b"event: turn.ended"):
                        self.turns += 1
                        return
                    patience -= 1
                    if not patience:
                        break
            finally:
                writer.transport.abort()

    async def _look(self) -> None:
        """Whoever looks at all sessions, for a while."""
        while True:
            await self._breathe()
            named = ",".join(self.sessions[-5:])
            reader, writer = await _send(self._server, "GET", f"/api/v1/stream?sessions={named}", None)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._chance.uniform(0.1, 8)):
                    async for _ in reader:
                        pass
            writer.transport.abort()

    async def _talk(self) -> None:
        url = self._server.url.replace("http", "ws", 1) + "/ws"
        while True:
            await self._breathe()
            bearer = {"Authorization": f"Bearer {self._server.token}"}
            async with connect(url, additional_headers=bearer, proxy=None) as socket:
                for session in self.sessions[-5:]:
                    await socket.send(json.dumps({"type": "subscribe", "session": session}))
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._chance.uniform(0.1, 5)):
                        async for _ in socket:
                            pass

    async def _sample(self) -> None:
        process = Path(f"/proc/{self._server.pid}")
        while True:
            await asyncio.sleep(EVERY)
            sample = Sample(
                at=self._elapsed,
                memory=self._server.memory,
                fds=len(list((process / "fd").iterdir())),
                threads=len(list((process / "task").iterdir())),
                cpu=self._server.cpu,
                sessions=len(self.sessions),
                turns=self.turns,
            )
            self.samples.append(sample)
            sys.stdout.write(
                f"{sample.at:7.0f} s  {sample.memory:7.1f} MB  {sample.fds:5} fds  {sample.threads:3} threads"
                f"  {sample.cpu:7.1f} s CPU  {sample.sessions:6} sessions  {sample.turns:6} turns\n"
            )
            sys.stdout.flush()


async def _ask(server: Server, method: str, path: str, body: object) -> bytes:
    reader, writer = await _send(server, method, path, body)
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
    finally:
        writer.close()
    if not head.startswith(b"HTTP/1.1 20"):
        raise RuntimeError(f"{method} {path}: {answer!r}")
    return answer


async def _send(
    server: Server, method: str, path: str, body: object
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=2**22)
    data = json.dumps(body).encode() if body is not None else b""
    writer.write(
        f"{method} {path} HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer {server.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    return reader, writer


def verdict(samples: list[Sample]) -> tuple[str, bool]:
    """What ten minutes add, judged by what follows the first third: by then all that is loaded once is loaded."""
    later = samples[len(samples) // 3 :]
    if len(later) < 3:
        return "Too short to tell.", False
    times = [sample.at for sample in later]
    memory = linear_regression(times, [sample.memory for sample in later]).slope * 600
    fds = linear_regression(times, [float(sample.fds) for sample in later]).slope * 600
    flat = memory <= GROWTH_MB and fds <= GROWTH_FDS
    average = mean(sample.memory for sample in later)
    said = f"{average:.1f} MB on average, {memory:+.1f} MB and {fds:+.0f} fds in 10 minutes"
    return f"{said}: {'flat' if flat else 'NOT FLAT'}", flat


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    with model("read", {"path": "notes.txt"}) as url, serving(url) as server:
        soak = Soak(server, minutes * 60)
        asyncio.run(soak.run())
    said, flat = verdict(soak.samples)
    refused = f"; {len(soak.refused)} requests were refused, the last: {soak.refused[-1]}" if soak.refused else ""
    sys.stdout.write(f"\n{said}{refused}\n")
    return 0 if flat and not refused else 1


if __name__ == "__main__":
    sys.exit(main())
