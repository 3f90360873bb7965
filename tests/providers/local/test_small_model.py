"""A real model, asked over the wire: what is checked is the shape of what it says, never its wisdom."""

import asyncio
import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.small_model import is_alive, lent, needs_model, worked

from sylph.core.errors import ProviderError
from sylph.core.messages import Message
from sylph.core.provider import Chunk, Provider, Reply, Request, Text
from sylph.net.http import Client
from sylph.providers.endpoint import Endpoint
from sylph.providers.local.models import LocalEndpoint, LocalModel
from sylph.providers.local.provider import Local
from sylph.providers.local.runtimes import Address, borrow
from sylph.providers.speak import speak

pytestmark = needs_model
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["colour", "count"],
    "additionalProperties": False,
}
STORY = "Tell me a very long story about a fox."
# It would go on for ever, were it not cut off.
ENDLESS = {"ignore_eos": True, "max_tokens": 4000}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> LocalEndpoint:
    return lent(tmp_path_factory.mktemp("home") / "local")


@pytest.fixture(scope="module")
def address(endpoint: LocalEndpoint) -> Generator[Address, None, None]:
    """One runtime for all of these tests: it belongs to whoever holds the lease, and to no event loop."""
    model = endpoint.models["small"]
    assert isinstance(model, LocalModel)
    found, lease = asyncio.run(borrow(endpoint, model))
    yield found
    lease.drop()
    end = time.monotonic() + 10
    while is_alive(found.pid):
        assert time.monotonic() < end
        time.sleep(0.02)


async def told(provider: Local, text: str) -> list[Chunk]:
    request = Request(model="small", system="Answer in one short sentence.", messages=(Message("user", text),))
    return [chunk async for chunk in provider.stream(request, provider.body(request))]


async def test_it_streams_and_counts(endpoint: LocalEndpoint, client: Client, address: Address) -> None:
    provider = Local(endpoint, client)
    chunks = await told(provider, "What is the capital of France?")
    reply = chunks[-1]
    assert isinstance(reply, Reply)
    pieces = [chunk.text for chunk in chunks if isinstance(chunk, Text)]
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text
    assert (reply.finish, reply.calls) == ("stop", ())
    assert reply.usage.input > 10
    assert 0 < reply.usage.output < 512
    again = (await told(provider, "What is the capital of France?"))[-1]
    assert isinstance(again, Reply)
    assert again.usage.cached > 10
    await provider.close()


async def test_an_answer_that_is_cut_off_is_not_thought_to_its_end(
    endpoint: LocalEndpoint, client: Client, address: Address
) -> None:
    provider = Local(endpoint, client)
    request = Request(model="small", system="", messages=(Message("user", STORY),))
    body = json.loads(provider.body(request)) | ENDLESS
    chunks = provider.stream(request, json.dumps(body).encode())
    async for chunk in chunks:
        if isinstance(chunk, Text):
            break
    await chunks.aclose()
    await is_quiet(address.pid)
    await provider.close()


async def test_a_runtime_that_is_not_asked_is_let_go(tmp_path: Path, client: Client) -> None:
    provider = Local(lent(tmp_path / "local", idle_seconds=0.2), client)
    await told(provider, "Say yes.")
    run = tmp_path / "local" / "run"
    async with asyncio.timeout(10):
        while list(run.glob("*.json")):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
    assert isinstance((await told(provider, "Say yes."))[-1], Reply)
    await provider.close()


# The same server, asked in three dialects.
DIALECTS = {"chat": "/v1", "responses": "/v1", "anthropic": ""}
dialects = pytest.mark.parametrize("dialect", DIALECTS)


def asked(address: Address, client: Client, dialect: str) -> Provider:
    url = f"{address.url}{DIALECTS[dialect]}"
    return speak(Endpoint(name="real", base_url=url, dialect=dialect, api_key=address.key, local=True), client)


def question(**more: Any) -> Request:
    return Request(model="small", system="Be short.", messages=(Message("user", STORY),), **more)


async def answer(provider: Provider, request: Request) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request, provider.body(request))]


@dialects
async def test_each_dialect_streams_and_counts(address: Address, client: Client, dialect: str) -> None:
    chunks = await answer(asked(address, client, dialect), question(max_tokens=24))
    reply = chunks[-1]
    assert isinstance(reply, Reply)
    pieces = [chunk.text for chunk in chunks if isinstance(chunk, Text)]
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text
    assert (reply.calls, reply.usage.output) == ((), 24)
    # As a response, this server takes one that was cut off for complete.
    assert reply.finish == ("stop" if dialect == "responses" else "length")
    assert reply.usage.input > 10


@dialects
async def test_each_dialect_is_stopped_in_the_middle(address: Address, client: Client, dialect: str) -> None:
    provider, request = asked(address, client, dialect), question(max_tokens=4000)
    endless = json.loads(provider.body(request)) | {"ignore_eos": True}
    chunks = provider.stream(request, json.dumps(endless).encode())
    async for chunk in chunks:
        if isinstance(chunk, Text):
            break
    await chunks.aclose()
    await is_quiet(address.pid)


@dialects
async def test_each_dialect_tells_that_the_key_is_wrong(address: Address, client: Client, dialect: str) -> None:
    wrong = Address(address.url, "wrong", address.pid)
    with pytest.raises(ProviderError) as caught:
        await answer(asked(wrong, client, dialect), question(max_tokens=4))
    assert caught.value.failure == "auth"


@dialects
async def test_each_dialect_tells_that_it_is_too_much(address: Address, client: Client, dialect: str) -> None:
    request = Request(model="small", system="", messages=(Message("user", "word " * 20_000),), max_tokens=4)
    with pytest.raises(ProviderError) as caught:
        await answer(asked(address, client, dialect), request)
    assert caught.value.failure == "overflow"


@pytest.mark.parametrize("dialect", ["chat", "responses"])
async def test_an_answer_in_a_form(address: Address, client: Client, dialect: str) -> None:
    """This server heeds what is said of the form in chat; for responses it has its own word, for messages none."""
    provider, request = asked(address, client, dialect), question(max_tokens=60, schema=SCHEMA)
    own = {"json_schema": SCHEMA} if dialect == "responses" else {}
    body = json.dumps(json.loads(provider.body(request)) | own).encode()
    reply = [chunk async for chunk in provider.stream(request, body)][-1]
    assert isinstance(reply, Reply)
    check(reply.text)


def check(text: str) -> None:
    """That it follows the schema."""
    value = json.loads(text)
    assert set(value) == {"colour", "count"}
    assert value["colour"] in ("red", "blue")
    assert isinstance(value["count"], int)


async def is_quiet(pid: int) -> None:
    """Waits until a process does nothing for a while."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        before = worked(pid)
        await asyncio.sleep(0.3)
        if worked(pid) - before <= 1:
            return
    raise AssertionError("it goes on")
