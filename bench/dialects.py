"""What one piece of a streamed answer costs from the bytes to the signal, beside parsing its JSON and nothing else."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from statistics import median
from typing import Any, cast

import msgspec
from tests.model_server.script import say
from tests.model_server.server import DIALECTS

from bench.measure import Row
from sylph.core.messages import Message
from sylph.core.provider import ModelInfo, ModelRequest
from sylph.engine.model.gateway import CallReporter, ModelCall, ModelGateway
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import Endpoint
from sylph.providers.registry import create_provider

PIECES = 2_000
ROUNDS = 7
SPOKEN = ("chat", "responses", "anthropic", "gemini", "ollama")
BAR = 25.0


class Canned:
    """A response that is all there, each piece as it would come out of the network."""

    status = 200
    headers: dict[str, str] = {}

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = iter(frames)

    def __aiter__(self) -> "Canned":
        return self

    async def __anext__(self) -> bytes:
        for frame in self._frames:
            return frame
        raise StopAsyncIteration

    async def drain(self, seconds: float) -> None:
        """There is nothing to wait for."""


class Line:
    """A client that reaches nobody."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = frames

    @asynccontextmanager
    async def post(self, *_: object, **__: object) -> AsyncGenerator[Canned, None]:
        yield Canned(self._frames)


def rows() -> Iterator[Row]:
    for dialect in SPOKEN:
        frames, _ = DIALECTS[dialect]().frames(say("word" * PIECES, chunk=4))
        floor = median(_raw(frames) for _ in range(ROUNDS))
        figure = median(asyncio.run(_through(dialect, frames)) for _ in range(ROUNDS))
        yield Row(name=f"a piece of a stream, {dialect}", figure=figure, unit="µs CPU", floor=floor, bar=BAR)


def _raw(frames: Sequence[bytes]) -> float:
    """Parsing the JSON of every piece."""
    began = time.process_time()
    for frame in frames:
        for line in frame.splitlines():
            data = line.removeprefix(b"data: ")
            if data.startswith(b"{"):
                msgspec.json.decode(data)
    return (time.process_time() - began) / PIECES * 1e6


async def _through(dialect: str, frames: Sequence[bytes]) -> float:
    """Through the dialect and the gateway, to a door that shows nothing."""
    known = {"m": ModelInfo(name="m", window=8192)}
    endpoint = Endpoint(name="bench", base_url="http://x", dialect=dialect, api_key="k", local=True, models=known)
    provider = create_provider(endpoint, cast("HttpClient", Line(frames)))
    request = ModelRequest(model="m", system="s", messages=(Message("user", "hello"),))
    shown: list[Any] = []

    async def emit(_: object) -> None:
        """Facts are not what is measured."""

    call, voice = ModelCall(model="bench/m", request=request), CallReporter(emit=emit, show=shown.append)
    began = time.process_time()
    answer = await ModelGateway({"bench": provider}).call_model(call, voice)
    used = time.process_time() - began
    assert answer.reply.text == "word" * PIECES
    assert len(shown) == PIECES
    return used / PIECES * 1e6
