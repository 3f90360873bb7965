import pytest
from tests.model_server import ModelServer
from tests.providers.servers import saying, serving

from sylph.core.provider import ModelInfo
from sylph.providers.discover import LOCAL, OPENAI, Settings, configured, find, listed, local, ollama_url
from sylph.providers.endpoint import Endpoint
from sylph.providers.http import Client

NOWHERE: dict[str, str] = {}


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("box", "http://box:11434/v1"),
        ("box:8000", "http://box:8000/v1"),
        (":8000", "http://127.0.0.1:8000/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
        ("[::]", "http://127.0.0.1:11434/v1"),
        ("http://box:11434/", "http://box:11434/v1"),
        ("http://box", "http://box:80/v1"),
        ("https://box", "https://box:443/v1"),
        (" https://box:9/v1 ", "https://box:9/v1"),
    ],
)
def test_every_form_of_ollama_host_becomes_a_base_url(host: str, url: str) -> None:
    assert ollama_url(host) == url


def test_what_is_configured_is_known_without_asking_anybody() -> None:
    mine = Endpoint(name="mine", base_url="http://mine/v1")
    settings = Settings(providers=(mine,), openai_api_key="sk-1", ollama_host="box")
    assert [(endpoint.name, endpoint.base_url, endpoint.local) for endpoint in configured(settings)] == [
        ("mine", "http://mine/v1", False),
        ("openai", OPENAI, False),
        ("ollama", "http://box:11434/v1", True),
    ]
    assert "sk-1" not in repr(settings) + repr(configured(settings))


def test_the_config_file_comes_before_the_environment() -> None:
    mine = Endpoint(name="openai", base_url="http://mine/v1")
    assert configured(Settings(providers=(mine,), openai_api_key="sk-1")) == (mine,)


def test_a_base_url_on_this_machine_is_free_of_charge() -> None:
    (endpoint,) = configured(Settings(openai_base_url="http://localhost:8000/v1"))
    assert (endpoint.local, endpoint.info("m").price_in) == (True, 0)


def test_places_that_are_configured_anyway_are_not_probed_again() -> None:
    settings = Settings(ollama_host="box", openai_base_url=LOCAL["vllm"])
    assert [endpoint.name for endpoint in local(settings)] == ["llamacpp", "lmstudio"]
    assert local(Settings(places=NOWHERE)) == ()


async def test_the_best_model_of_every_service_that_answers_is_found(client: Client) -> None:
    async with ModelServer(models=["whisper-1", "gpt-5"]) as one, ModelServer(models=["llama3"]) as other:
        silent = Endpoint(name="silent", base_url="http://127.0.0.1:9/v1")
        mine = Endpoint(name="mine", base_url=other.url)
        settings = Settings(providers=(silent, mine), openai_base_url=one.url, places=NOWHERE)
        found = await find(settings, client)
    assert [(each.provider.name, each.model, each.why) for each in found] == [
        ("mine", "llama3", "it is in the config file"),
        ("openai", "gpt-5", "OPENAI_BASE_URL is set"),
    ]


async def test_models_that_are_configured_count_where_a_service_lists_none(client: Client) -> None:
    models = {"big": ModelInfo(name="big", window=1000)}
    mine = Endpoint(name="mine", base_url="http://127.0.0.1:9/v1", models=models)
    (found,) = await find(Settings(providers=(mine,), places=NOWHERE), client)
    assert (found.provider, found.model) == (mine, "big")


async def test_a_server_that_runs_here_is_found(client: Client) -> None:
    async with ModelServer(models=["qwen3:8b"]) as server:
        places = {"ollama": server.url, "vllm": "http://127.0.0.1:9/v1"}
        (found,) = await find(Settings(places=places), client)
    assert (found.provider.name, found.provider.local) == ("ollama", True)
    assert (found.model, found.why) == ("qwen3:8b", f"it answers at {server.url}")


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhtml", b"", b"HTTP/1.1 200 OK\r\n\r\n"]
)
async def test_what_is_no_list_of_models_is_no_model_server(client: Client, answer: bytes) -> None:
    async with serving(saying(answer, wait=0.5)) as port:
        assert await listed(Endpoint(name="x", base_url=f"http://127.0.0.1:{port}/v1"), client, seconds=0.1) == ()
