"""The real server as a process, and a client that talks to it over a real socket."""

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import httpx2
from tests.flows.program import Sylph
from tests.patience import PATIENCE

from sylph.config import load_config
from sylph.interfaces.http.security.token_store import ServerTokenStore


@dataclass
class Told:
    """One server-sent event."""

    id: str
    type: str
    data: dict[str, Any]


@dataclass
class Served:
    """A running `sylph serve`; `client` carries a token that may everything, `bare` none."""

    sylph: Sylph
    process: Process
    url: str
    token: str
    client: httpx2.AsyncClient = field(repr=False)
    bare: httpx2.AsyncClient = field(repr=False)

    def kill(self) -> None:
        self.process.kill()

    async def session(self, **body: Any) -> dict[str, Any]:
        made = await self.client.post("/api/v1/sessions", json=body)
        assert made.status_code == 201, made.text
        return made.json()

    async def say(self, session: str, text: str) -> None:
        said = await self.client.post(f"/api/v1/sessions/{session}/messages", json={"text": text})
        assert said.status_code == 202, said.text

    async def until(self, session: str, type: str = "turn.ended", after: int = 0, *, times: int = 1) -> list[Told]:
        """What the stream tells until so many events of this type, and with them."""
        seen: list[Told] = []
        async with asyncio.timeout(PATIENCE):
            async for event in self.events(f"/api/v1/sessions/{session}/events?after={after}"):
                seen.append(event)
                if sum(told.type == type for told in seen) == times:
                    return seen
        raise AssertionError(f"The stream ended without {type}: {seen}")

    async def events(self, path: str, **headers: str) -> AsyncGenerator[Told, None]:
        async with self.client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            told = dict[str, str]()
            async for line in answer.aiter_lines():
                if line.startswith(":"):
                    continue
                if line:
                    name, _, value = line.partition(": ")
                    told[name] = value
                elif told:
                    yield Told(told.get("id", ""), told.get("event", ""), json.loads(told.get("data", "null")))
                    told = {}


@asynccontextmanager
async def serving(sylph: Sylph, *arguments: str) -> AsyncGenerator[Served, None]:
    """Starts the server on any free port; ends it as a user would, unless a test has ended it already."""
    token = _token(sylph)
    process = await sylph.start("serve", "--port", "0", *arguments)
    try:
        url = await _address(process)
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(base_url=url, headers=bearer, timeout=PATIENCE, trust_env=False) as client,
            httpx2.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False) as bare,
        ):
            yield Served(sylph, process, url, token, client, bare)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


def _token(sylph: Sylph) -> str:
    """One that may everything. Without a process, which takes as long as a third of a server's start."""
    with closing(ServerTokenStore(load_config(sylph.env({})).data / "keys.db")) as keys:
        return keys.create_token("token", "tests", ("admin",))[1]


async def _address(process: Process) -> str:
    assert process.stdout
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            url = line.decode().strip().rpartition(" ")[2]
            if url.startswith("http"):
                return url
    assert process.stderr
    raise AssertionError(f"The server did not start: {(await process.stderr.read()).decode()}")
