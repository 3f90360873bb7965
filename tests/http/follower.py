"""Clients that are cut off and come back, and still have to end with exactly the log."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.flows.program import Sylph
from tests.http.served import Served, Told
from tests.http.tap import Tap
from tests.model_server import Asked, Step, call, say
from tests.patience import PATIENCE
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Fact = tuple[int, str]


def model(asked: Asked) -> Step:
    """Talks slowly; first works with a tool where it is told to."""
    last = asked.json["messages"][-1]
    if "work" in asked.users[0] and last["role"] == "user":
        return call("shell", command="echo one; echo two")
    if "much" in asked.users[0]:
        return say("All work and no play makes a dull boy. " * 200_000, chunk=4000)
    return say("Word after word it says what it has to say. " * 4, delay=0.004)


@dataclass
class Follower:
    """Follows by server-sent events. It knows nothing but the last `id` it got."""

    path: str
    last: str = ""
    facts: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list[Fact]))
    told: list[Told] = field(default_factory=list[Told])
    enough: Callable[[], bool] = lambda: False

    async def read(self, served: Served, bytes: int = 10**9, seconds: float = PATIENCE) -> None:
        """Reads so many bytes, or so long, and cuts the connection; fewer where that is cut by somebody else."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._read(served, bytes)

    async def _read(self, served: Served, bytes: int) -> None:
        with suppress(OSError, EOFError):
            headers = {"Authorization": f"Bearer {served.token}", **({"Last-Event-ID": self.last} if self.last else {})}
            tap = await Tap.open(served.url, self.path, headers)
            try:
                assert " 200 " in tap.head, tap.head
                async for event in tap.events(bytes):
                    self.take(event)
                    if self.enough():
                        break
            finally:
                tap.cut()

    def take(self, event: Told) -> None:
        self.told.append(event)
        self.last = event.id or self.last
        if event.data.get("seq") and "hash" in event.data:
            self.facts[event.data["session"]].append((event.data["seq"], event.data["hash"]))

    async def until(self, served: Served, session: str, seq: int) -> None:
        """Follows until it has the fact `seq`."""
        self.enough = lambda: bool(self.facts[session]) and self.facts[session][-1][0] >= seq
        async with asyncio.timeout(PATIENCE):
            while not self.enough():
                await self.read(served)


@dataclass
class Caller:
    """Follows by WebSocket: it remembers the last fact of each session."""

    facts: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list[Fact]))
    told: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    enough: Callable[[], bool] = lambda: False

    async def until(self, served: Served, ends: dict[str, int], messages: int) -> None:
        """Follows, so many messages at a time, until it has all facts of all these sessions."""
        self.enough = lambda: all(self.facts[id] and self.facts[id][-1][0] >= seq for id, seq in ends.items())
        async with asyncio.timeout(PATIENCE):
            while not self.enough():
                await self.read(served, list(ends), messages)

    async def read(self, served: Served, sessions: list[str], messages: int = 10**9, seconds: float = PATIENCE) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._read(served, sessions, messages)

    async def _read(self, served: Served, sessions: list[str], messages: int) -> None:
        with suppress(OSError, ConnectionClosed):
            async with dial(served) as socket:
                for session in sessions:
                    after = self.facts[session][-1][0] if self.facts[session] else 0
                    await socket.send(json.dumps({"type": "subscribe", "session": session, "after": after}))
                for _ in range(messages):
                    self.take(json.loads(await socket.recv()))
                    if self.enough():
                        break
                # As a line does that breaks: nobody says goodbye.
                socket.transport.abort()

    def take(self, message: dict[str, Any]) -> None:
        self.told.append(message)
        if message.get("seq") and "hash" in message:
            self.facts[message["session"]].append((message["seq"], message["hash"]))


def dial(served: Served, token: str = "", **how: Any) -> "connect":
    bearer = {"Authorization": f"Bearer {token or served.token}", **how.pop("headers", {})}
    url = served.url.replace("http", "ws", 1) + "/ws"
    return connect(url, additional_headers=bearer, proxy=None, **how)


class Talker:
    """Talks by WebSocket. What comes while it waits for something else is looked at later."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._told: list[dict[str, Any]] = []

    async def ask(self, type: str, **what: Any) -> dict[str, Any]:
        """Gives a command and returns what is said to it."""
        await self.socket.send(json.dumps({"type": type, "id": f"{type}-1", **what}))
        return await self._find(lambda told: told.get("id") == f"{type}-1")

    async def hear(self, type: str, **wanted: Any) -> dict[str, Any]:
        """The next message of a type in which this is so."""
        return await self._find(
            lambda told: told["type"] == type and all(told.get(name) == value for name, value in wanted.items())
        )

    async def _find(self, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while True:
                for told in self._told:
                    if right(told):
                        self._told.remove(told)
                        return told
                self._told.append(json.loads(await self.socket.recv()))


async def logged(sylph: Sylph, session: str) -> list[Fact]:
    """The log, by another process than the one that streamed it."""
    done = await sylph.run("session", "export", session)
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    return [(line["seq"], line["hash"]) for line in lines if "hash" in line and line.get("session") == session]


async def rested(served: Served, *sessions: str) -> dict[str, int]:
    """Waits until nothing runs and nothing waits to run; the last fact of each session."""
    before: dict[str, int] = {}
    async with asyncio.timeout(PATIENCE):
        while True:
            got = [(await served.client.get(f"/api/v1/sessions/{session}")).json() for session in sessions]
            ends = {one["id"]: one["seq"] for one in got}
            done = all(one["state"] == "idle" and not one["queued"] and not one["open_turn"] for one in got)
            if ends == before and done:
                return ends
            before = ends
            await asyncio.sleep(0.15)
