"""A real model, asked over the wire: what is checked is the shape of what it says, never its wisdom."""

import asyncio
import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.small_model import is_alive, lent, needs_model, worked

from sylph.core.messages import Message
from sylph.core.provider import Chunk, Reply, Request, Text
from sylph.net.http import Client
from sylph.providers.local.models import LocalEndpoint, LocalModel
from sylph.providers.local.provider import Local
from sylph.providers.local.runtimes import Address, borrow

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


def chat(**more: Any) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": STORY}]
    return "v1/chat/completions", {"model": "small", "messages": messages, "max_tokens": 40, **more}


def responses(**more: Any) -> tuple[str, dict[str, Any]]:
    return "v1/responses", {"model": "small", "input": STORY, "max_output_tokens": 40, **more}


def messages(**more: Any) -> tuple[str, dict[str, Any]]:
    said = [{"role": "user", "content": STORY}]
    return "v1/messages", {"model": "small", "messages": said, "max_tokens": 40, **more}


async def ask(address: Address, client: Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """What a service says: one document, or the data of its events."""
    headers = {"Authorization": f"Bearer {address.key}", "Content-Type": "application/json"}
    async with client.post(f"{address.url}/{path}", json.dumps(body).encode(), headers=headers) as response:
        said = (await response.read()).decode()
    assert response.status == 200, said
    if not body.get("stream"):
        return [json.loads(said)]
    rows = [row.removeprefix("data: ") for row in said.splitlines() if row.startswith("data: ")]
    return [json.loads(row) for row in rows if row != "[DONE]"]


async def test_chat_completions_on_the_wire(address: Address, client: Client) -> None:
    events = await ask(address, client, *chat(stream=True, stream_options={"include_usage": True}))
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
    assert text
    assert events[-1]["usage"]["completion_tokens"] == 40
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    (whole,) = await ask(address, client, *chat(response_format=form))
    check(whole["choices"][0]["message"]["content"])


async def test_responses_on_the_wire(address: Address, client: Client) -> None:
    events = await ask(address, client, *responses(stream=True))
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    done = events[-1]["response"]
    assert done["output"][-1]["content"][0]["text"] == text
    assert done["usage"]["output_tokens"] == 40


async def test_messages_on_the_wire(address: Address, client: Client) -> None:
    events = await ask(address, client, *messages(stream=True))
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert any(event["type"] == "content_block_delta" and event["delta"]["text"] for event in events)
    closing = next(event for event in events if event["type"] == "message_delta")
    assert closing["delta"]["stop_reason"] == "max_tokens"
    assert closing["usage"]["output_tokens"] == 40


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
