import asyncio
import math

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer
from tests.net.servers import saying, serving
from tests.patience import PATIENCE

from sylph.core.provider import ModelInfo
from sylph.net.http_client import HttpClient
from sylph.providers.discover import (
    LOCAL_URLS,
    DiscoverySettings,
    configured_endpoints,
    find_first_model,
    find_models,
    list_models,
    local_endpoints,
    ollama_url,
)
from sylph.providers.endpoint import Endpoint, on_this_machine

SILENT = Endpoint(name="silent", base_url="http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:8000", "http://box:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("[::]", "http://127.0.0.1:11434"),
        ("http://box:11434/", "http://box:11434"),
        ("http://box", "http://box:80"),
        ("https://box", "https://box:443"),
        (" https://box:9/v1 ", "https://box:9"),
        ("https://box/behind/api", "https://box:443/behind"),
    ],
)
def test_every_form_of_ollama_host_becomes_a_base_url(host: str, url: str) -> None:
    assert ollama_url(host) == url


def test_a_key_is_not_shown_with_its_endpoint() -> None:
    assert "sk-1" not in repr(
        DiscoverySettings(providers=(Endpoint(name="a", base_url="http://a/v1", api_key="sk-1"),))
    )


def test_what_this_machine_serves_is_free_of_charge() -> None:
    assert all(endpoint.model_info("m").price_in == 0 for endpoint in local_endpoints(DiscoverySettings()))


def test_a_service_is_on_this_machine_by_its_address() -> None:
    urls = ("http://localhost:1/v1", "http://127.0.0.2", "http://[::1]:1", "https://api.openai.com/v1", "nonsense")
    assert [on_this_machine(url) for url in urls] == [True, True, True, False, False]


def test_places_that_are_configured_anyway_are_not_probed_again() -> None:
    ollama = Endpoint(name="ollama", base_url="http://box:11434/v1")
    mine = Endpoint(name="mine", base_url=LOCAL_URLS["vllm"])
    settings = DiscoverySettings(providers=(ollama, mine))
    assert configured_endpoints(settings) == (ollama, mine)
    assert [endpoint.name for endpoint in local_endpoints(settings)] == ["llamacpp", "lmstudio"]
    assert local_endpoints(DiscoverySettings(probe=False)) == ()


async def test_the_best_model_of_every_service_that_answers_is_found(client: HttpClient) -> None:
    async with ModelServer(models=["whisper-1", "gpt-5"]) as one, ModelServer(models=["qwen3:8b"]) as other:
        mine = Endpoint(name="mine", base_url=one.url)
        settings = DiscoverySettings(
            providers=(SILENT, mine), local_urls={"vllm": other.url, "llamacpp": SILENT.base_url}
        )
        found = await find_models(settings, client)
    assert [(each.provider.name, each.model, each.why) for each in found] == [
        ("mine", "gpt-5", "it is configured"),
        ("vllm", "qwen3:8b", f"it answers at {other.url}"),
    ]


async def test_models_that_are_configured_count_where_a_service_lists_none(client: HttpClient) -> None:
    mine = replace(SILENT, models={"big": ModelInfo(name="big", window=1000)})
    (found,) = await find_models(DiscoverySettings(providers=(mine,), probe=False), client)
    assert (found.provider, found.model) == (mine, "big")


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhtml", b"", b"HTTP/1.1 200 OK\r\n\r\n"]
)
async def test_what_is_no_list_of_models_is_no_model_server(client: HttpClient, answer: bytes) -> None:
    async with serving(saying(answer, wait=0.5)) as port:
        assert await list_models(Endpoint(name="x", base_url=f"http://127.0.0.1:{port}/v1"), client, seconds=0.1) == ()


async def test_the_first_that_has_a_model_is_taken_without_waiting_for_the_rest(client: HttpClient) -> None:
    async with ModelServer(models=["gpt-5"]) as one, serving(saying(b"", wait=math.inf)) as port:
        slow = Endpoint(name="slow", base_url=f"http://127.0.0.1:{port}/v1")
        settings = DiscoverySettings(providers=(SILENT, Endpoint(name="mine", base_url=one.url), slow), probe=False)
        async with asyncio.timeout(PATIENCE):
            found = await find_first_model(settings, client)
    assert found is not None
    assert (found.provider.name, found.model) == ("mine", "gpt-5")
    assert await find_first_model(DiscoverySettings(providers=(SILENT,), probe=False), client) is None
