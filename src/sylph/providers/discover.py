"""What there is to think with: the services that are configured, and the model servers that run on this machine."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sylph.core.errors import ProviderError
from sylph.core.provider import ModelInfo
from sylph.providers.choose import best
from sylph.providers.endpoint import Endpoint, on_this_machine
from sylph.providers.http import Client
from sylph.providers.openai_chat import OpenAIChat

OPENAI = "https://api.openai.com/v1"
LOCAL: Mapping[str, str] = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
# A server on this machine answers at once or not at all; a service in the net may take a moment.
PROBE_SECONDS = 0.3
ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment and the config file say, as values. `places` are where to look on this machine."""

    providers: tuple[Endpoint, ...] = ()
    openai_base_url: str = ""
    openai_api_key: str = field(default="", repr=False)
    ollama_host: str = ""
    places: Mapping[str, str] = field(default_factory=lambda: LOCAL)


@dataclass(frozen=True, slots=True)
class Found:
    """A model that can be used now, and why we think so."""

    provider: Endpoint
    model: str
    why: str


@dataclass(frozen=True, slots=True)
class _Lead:
    endpoint: Endpoint
    why: str
    seconds: float = ASK_SECONDS


def configured(settings: Settings) -> tuple[Endpoint, ...]:
    """The services that somebody set up, in the order in which they are preferred."""
    return tuple(lead.endpoint for lead in _leads(settings))


def local(settings: Settings) -> tuple[Endpoint, ...]:
    """Where model servers usually listen on this machine, without what is configured anyway."""
    taken = {known for endpoint in configured(settings) for known in (endpoint.name, endpoint.base_url)}
    places = ((name, url) for name, url in settings.places.items() if not {name, url} & taken)
    return tuple(Endpoint(name=name, base_url=url, local=True) for name, url in places)


async def find(settings: Settings, client: Client) -> tuple[Found, ...]:
    """The best model of every service that answers; what is configured comes before what merely runs."""
    leads = [*_leads(settings), *(_probe(endpoint) for endpoint in local(settings))]
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(lead, client)) for lead in leads]
    return tuple(found for task in asked if (found := task.result()) is not None)


async def listed(endpoint: Endpoint, client: Client, seconds: float = ASK_SECONDS) -> tuple[ModelInfo, ...]:
    """The models of a service; none if it does not answer in time, or not with a list."""
    try:
        async with asyncio.timeout(seconds):
            return await OpenAIChat(endpoint, client).models()
    except (ProviderError, TimeoutError):
        return ()


def ollama_url(host: str) -> str:
    """The base URL for any form of OLLAMA_HOST: `host`, `host:port`, `:port`, `http://…`; 0.0.0.0 is this machine."""
    host = host.strip()
    parts = urlsplit(host if "://" in host else f"//{host}")
    name = parts.hostname or "0.0.0.0"
    name = "127.0.0.1" if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 11434)
    return f"{parts.scheme or 'http'}://{name}:{port}/v1"


def _leads(settings: Settings) -> list[_Lead]:
    leads = [_Lead(endpoint, "it is in the config file") for endpoint in settings.providers]
    if settings.openai_base_url or settings.openai_api_key:
        why = "OPENAI_BASE_URL is set" if settings.openai_base_url else "OPENAI_API_KEY is set"
        leads.append(_Lead(_openai(settings), why))
    if settings.ollama_host:
        url = ollama_url(settings.ollama_host)
        leads.append(_Lead(Endpoint(name="ollama", base_url=url, local=True), "OLLAMA_HOST is set"))
    named: dict[str, _Lead] = {}
    for lead in leads:
        named.setdefault(lead.endpoint.name, lead)
    return list(named.values())


def _openai(settings: Settings) -> Endpoint:
    url = settings.openai_base_url or OPENAI
    return Endpoint(
        name="openai",
        base_url=url,
        api_key=settings.openai_api_key,
        key_from="OPENAI_API_KEY",
        local=on_this_machine(url),
    )


def _probe(endpoint: Endpoint) -> _Lead:
    return _Lead(endpoint, f"it answers at {endpoint.base_url}", PROBE_SECONDS)


async def _ask(lead: _Lead, client: Client) -> Found | None:
    models = await listed(lead.endpoint, client, lead.seconds)
    names = [info.name for info in models] or list(lead.endpoint.models)
    model = best(names)
    return Found(lead.endpoint, model, lead.why) if model else None
