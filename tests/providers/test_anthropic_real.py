"""The Anthropic dialect with a real model behind a real server: shapes are checked, never wisdom."""

import asyncio
from collections.abc import Generator
from contextlib import aclosing

import pytest
from tests.providers.test_dialects import chunks
from tests.small_model import lent, needs_model

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, ToolCall
from sylph.core.provider import ModelReply, ModelRequest, TextChunk
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.anthropic.provider import AnthropicProvider
from sylph.providers.endpoint import Endpoint
from sylph.providers.local.models import LocalModelInfo
from sylph.providers.local.runtime_process import borrow_runtime

pytestmark = needs_model


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[Endpoint, None, None]:
    made = lent(tmp_path_factory.mktemp("home") / "local")
    model = made.models["small"]
    assert isinstance(model, LocalModelInfo)
    address, lease = asyncio.run(borrow_runtime(made, model))
    yield Endpoint(name="real", base_url=address.url, api_key=address.key, dialect="anthropic")
    lease.release()


def ask(*messages: Message, limit: int = 24) -> ModelRequest:
    return ModelRequest(model="small", system="Answer in one short sentence.", messages=messages, max_tokens=limit)


async def test_it_streams_counts_and_finds_what_it_has_seen(service: Endpoint, client: HttpClient) -> None:
    spoken = AnthropicProvider(service, client)
    question = Message("user", "What is the capital of France?")
    *before, reply = await chunks(spoken, ask(question))
    assert isinstance(reply, ModelReply)
    assert "".join(chunk.text for chunk in before if isinstance(chunk, TextChunk)) == reply.text
    assert reply.usage.input > 20
    assert 0 < reply.usage.output <= 24
    *_, again = await chunks(spoken, ask(question, Message("assistant", reply.text), Message("user", "And of Spain?")))
    assert isinstance(again, ModelReply)
    assert again.usage.cached > 20
    assert again.usage.input > again.usage.cached


async def test_calls_and_results_of_another_model_are_taken(service: Endpoint, client: HttpClient) -> None:
    calls = (ToolCall("t1_c1", "read", '{"path":"a"}'), ToolCall("t1_c2", "read", "{oops"))
    talk = (Message("user", "Read."), Message("assistant", "", calls))
    results = (Message("tool", "one", call="t1_c1"), Message("tool", "", call="t1_c2"))
    *_, reply = await chunks(AnthropicProvider(service, client), ask(*talk, *results))
    assert isinstance(reply, ModelReply)
    assert reply.text


async def test_trouble_is_understood(service: Endpoint, client: HttpClient) -> None:
    spoken = AnthropicProvider(service, client)
    with pytest.raises(ProviderError) as caught:
        await chunks(spoken, ask(Message("user", "word " * 20_000)))
    assert caught.value.failure == "overflow"
    picture = Message("user", "Look.", images=(Image("d", "image/png", 3, "a.png"),))
    blind = ModelRequest(model="small", system="", messages=(picture,), max_tokens=8, image=str.encode)
    assert isinstance((await chunks(spoken, blind))[-1], ModelReply)
    assert b"a.png: not shown" in spoken.body(blind)
    assert [(info.name, info.window) for info in await spoken.models()] == [("small", 8192)]


async def test_an_answer_can_be_left(service: Endpoint, client: HttpClient) -> None:
    spoken = AnthropicProvider(service, client)
    story = ask(Message("user", "Tell me a very long story."), limit=400)
    async with aclosing(spoken.stream(story, spoken.body(story))) as stream:
        async for chunk in stream:
            if isinstance(chunk, TextChunk):
                break
    assert isinstance((await chunks(spoken, ask(Message("user", "Say yes."))))[-1], ModelReply)
