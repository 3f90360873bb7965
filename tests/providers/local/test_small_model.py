"""A real model, asked over the wire: what is checked is the shape of what it says, never its wisdom."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.patience import eventually, eventually_true
from tests.small_model import is_alive, lent, needs_model, worked

from sylph.core.errors import ProviderError
from sylph.core.messages import Message
from sylph.core.provider import Chunk, ModelReply, ModelRequest, Provider, TextChunk
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import Endpoint
from sylph.providers.local.models import LocalEndpoint, LocalModelInfo
from sylph.providers.local.provider import LocalProvider
from sylph.providers.local.runtime_process import RuntimeAddress, borrow_runtime
from sylph.providers.registry import create_provider

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
def address(endpoint: LocalEndpoint) -> Generator[RuntimeAddress, None, None]:
    """One runtime for all of these tests: it belongs to whoever holds the lease, and to no event loop."""
    model = endpoint.models["small"]
    assert isinstance(model, LocalModelInfo)
    found, lease = asyncio.run(borrow_runtime(endpoint, model))
    yield found
    lease.release()
    eventually_true(lambda: not is_alive(found.pid), "the end of the runtime")


async def told(provider: LocalProvider, text: str) -> list[Chunk]:
    request = ModelRequest(model="small", system="Answer in one short sentence.", messages=(Message("user", text),))
    return [chunk async for chunk in provider.stream(request, provider.body(request))]


async def test_it_streams_and_counts(endpoint: LocalEndpoint, client: HttpClient, address: RuntimeAddress) -> None:
    provider = LocalProvider(endpoint, client)
    chunks = await told(provider, "What is the capital of France?")
    reply = chunks[-1]
    assert isinstance(reply, ModelReply)
    pieces = [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text
    assert (reply.finish, reply.calls) == ("stop", ())
    assert reply.usage.input > 10
    assert 0 < reply.usage.output < 512
    again = (await told(provider, "What is the capital of France?"))[-1]
    assert isinstance(again, ModelReply)
    assert again.usage.cached > 10
    await provider.close()


async def test_an_answer_that_is_cut_off_is_not_thought_to_its_end(
    endpoint: LocalEndpoint, client: HttpClient, address: RuntimeAddress
) -> None:
    provider = LocalProvider(endpoint, client)
    request = ModelRequest(model="small", system="", messages=(Message("user", STORY),))
    body = json.loads(provider.body(request)) | ENDLESS
    chunks = provider.stream(request, json.dumps(body).encode())
    async for chunk in chunks:
        if isinstance(chunk, TextChunk):
            break
    await chunks.aclose()
    await is_quiet(address.pid)
    await provider.close()


async def test_a_runtime_that_is_not_asked_is_let_go(tmp_path: Path, client: HttpClient) -> None:
    provider = LocalProvider(lent(tmp_path / "local", idle_seconds=0.2), client)
    await told(provider, "Say yes.")
    run = tmp_path / "local" / "run"
    await eventually(lambda: not list(run.glob("*.json")), "the end of the runtime")
    assert isinstance((await told(provider, "Say yes."))[-1], ModelReply)
    await provider.close()


# The same server, asked in three dialects.
DIALECTS = {"chat": "/v1", "responses": "/v1", "anthropic": ""}
dialects = pytest.mark.parametrize("dialect", DIALECTS)


def asked(address: RuntimeAddress, client: HttpClient, dialect: str) -> Provider:
    url = f"{address.url}{DIALECTS[dialect]}"
    return create_provider(
        Endpoint(name="real", base_url=url, dialect=dialect, api_key=address.key, local=True), client
    )


def question(**more: Any) -> ModelRequest:
    return ModelRequest(model="small", system="Be short.", messages=(Message("user", STORY),), **more)


async def answer(provider: Provider, request: ModelRequest) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request, provider.body(request))]


@dialects
async def test_each_dialect_streams_and_counts(address: RuntimeAddress, client: HttpClient, dialect: str) -> None:
    chunks = await answer(asked(address, client, dialect), question(max_tokens=24))
    reply = chunks[-1]
    assert isinstance(reply, ModelReply)
    pieces = [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text
    assert (reply.calls, reply.usage.output) == ((), 24)
    # As a response, this server takes one that was cut off for complete.
    assert reply.finish == ("stop" if dialect == "responses" else "length")
    assert reply.usage.input > 10


@dialects
async def test_each_dialect_is_stopped_in_the_middle(address: RuntimeAddress, client: HttpClient, dialect: str) -> None:
    provider, request = asked(address, client, dialect), question(max_tokens=4000)
    endless = json.loads(provider.body(request)) | {"ignore_eos": True}
    chunks = provider.stream(request, json.dumps(endless).encode())
    async for chunk in chunks:
        if isinstance(chunk, TextChunk):
            break
    await chunks.aclose()
    await is_quiet(address.pid)


@dialects
async def test_each_dialect_tells_that_the_key_is_wrong(
    address: RuntimeAddress, client: HttpClient, dialect: str
) -> None:
    wrong = RuntimeAddress(address.url, "wrong", address.pid)
    with pytest.raises(ProviderError) as caught:
        await answer(asked(wrong, client, dialect), question(max_tokens=4))
    assert caught.value.failure == "auth"


@dialects
async def test_each_dialect_tells_that_it_is_too_much(
    address: RuntimeAddress, client: HttpClient, dialect: str
) -> None:
    request = ModelRequest(model="small", system="", messages=(Message("user", "word " * 20_000),), max_tokens=4)
    with pytest.raises(ProviderError) as caught:
        await answer(asked(address, client, dialect), request)
    assert caught.value.failure == "overflow"


@pytest.mark.parametrize("dialect", ["chat", "responses"])
async def test_an_answer_in_a_form(address: RuntimeAddress, client: HttpClient, dialect: str) -> None:
    """This server heeds what is said of the form in chat; for responses it has its own word, for messages none."""
    provider, request = asked(address, client, dialect), question(max_tokens=60, schema=SCHEMA)
    own = {"json_schema": SCHEMA} if dialect == "responses" else {}
    body = json.dumps(json.loads(provider.body(request)) | own).encode()
    reply = [chunk async for chunk in provider.stream(request, body)][-1]
    assert isinstance(reply, ModelReply)
    check(reply.text)


def check(text: str) -> None:
    """That it follows the schema."""
    value = json.loads(text)
    assert set(value) == {"colour", "count"}
    assert value["colour"] in ("red", "blue")
    assert isinstance(value["count"], int)


async def is_quiet(pid: int) -> None:
    """Waits until a process does nothing for a while."""

    async def quiet() -> bool:
        before = worked(pid)
        await asyncio.sleep(0.3)
        return worked(pid) - before <= 1

    await eventually(quiet, "a process that does nothing")
