"""Every vendor's way to complain, over the wire, in the dialect that its row speaks."""

from contextlib import aclosing

import pytest
from tests.model_server import ModelServer
from tests.model_server.vendors import OVERFLOWS, PAUSES, overflow, pause

from sylph.core.errors import ProviderError
from sylph.core.messages import Message
from sylph.core.provider import ModelRequest
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import Endpoint
from sylph.providers.registry import create_provider
from sylph.providers.vendors.table import find_vendor

HELLO = ModelRequest(model="m", system="s", messages=(Message("user", "hello"),))
NAMES = {"llama.cpp": "llamacpp", "lm": "lmstudio", "bedrock": "", "too": "", "in": ""}


async def complaint(server: ModelServer, client: HttpClient, name: str, dialect: str) -> ProviderError:
    base = server.url if dialect in ("chat", "responses") else server.root
    provider = create_provider(Endpoint(name=name, base_url=base, dialect=dialect, api_key="k"), client)
    with pytest.raises(ProviderError) as caught:
        async with aclosing(provider.stream(HELLO, provider.body(HELLO))) as stream:
            async for _ in stream:
                pass
    return caught.value


def named(vendor: str) -> tuple[str, str]:
    first = vendor.split(" ")[0]
    name = NAMES.get(first, first)
    return name, find_vendor(name).dialect


@pytest.mark.parametrize("vendor", [each for each in OVERFLOWS if named(each)[0]])
async def test_a_conversation_that_is_too_long(client: HttpClient, vendor: str) -> None:
    name, dialect = named(vendor)
    async with ModelServer([overflow(vendor)], dialects=(dialect,)) as server:
        error = await complaint(server, client, name, dialect)
    assert (error.failure, error.is_retryable) == ("overflow", False)


@pytest.mark.parametrize("dialect", ["chat", "responses", "ollama", "anthropic", "gemini"])
@pytest.mark.parametrize("vendor", PAUSES)
async def test_a_pause_that_is_asked_for(client: HttpClient, vendor: str, dialect: str) -> None:
    async with ModelServer([pause(vendor)], dialects=(dialect,)) as server:
        error = await complaint(server, client, "x", dialect)
    assert (error.failure, error.retry_after) == ("rate_limited", PAUSES[vendor][2])
