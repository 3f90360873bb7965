"""What there is to think with: the services that are configured, and the model servers that run on this machine."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field

from sylph.core.errors import ProviderError
from sylph.core.provider import ModelInfo
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import Endpoint
from sylph.providers.model_list_cache import ModelListCache
from sylph.providers.registry import create_provider
from sylph.providers.vendors.model_ranking import pick_best_model
from sylph.providers.vendors.table import VENDORS, find_vendor

# Where model servers usually listen on this machine.
LOCAL_URLS: Mapping[str, str] = {row.name: row.base_url for row in VENDORS if row.local}
# A server on this machine answers at once or not at all; a service in the net may take a moment.
PROBE_SECONDS = 0.3
ASK_SECONDS = 10.0


class DiscoverySettings(Struct, frozen=True, kw_only=True):
    """The services that are set up, most wanted first, and whether and where to look for more on this machine."""

    providers: tuple[Endpoint, ...] = ()
    unlisted: tuple[Endpoint, ...] = ()
    """The same services in another dialect, and those that nobody chose: used where they are named, and not listed."""
    probe: bool = True
    local_urls: Mapping[str, str] = field(default_factory=lambda: LOCAL_URLS)
    cache_folder: Path | None = None
    """Where the lists of models are kept."""
    local_endpoint: Endpoint | None = None
    """The models in files of this machine, which have to be started first."""


class DiscoveredModel(Struct, frozen=True):
    """A model that can be used now, and why we think so."""

    provider: Endpoint
    model: str
    why: str


def configured_endpoints(settings: DiscoverySettings) -> tuple[Endpoint, ...]:
    return settings.providers


def local_endpoints(settings: DiscoverySettings) -> tuple[Endpoint, ...]:
    """Where model servers usually listen on this machine, without what is configured anyway."""
    if not settings.probe:
        return ()
    taken = {known for endpoint in settings.providers for known in (endpoint.name, endpoint.base_url)}
    places = ((name, url) for name, url in settings.local_urls.items() if not {name, url} & taken)
    return tuple(
        Endpoint(
            name=name,
            base_url=url,
            dialect=find_vendor(name).dialect,
            local=True,
            model_list_cache=open_model_cache(settings.cache_folder, name, url),
        )
        for name, url in places
    )


def open_model_cache(folder: Path | None, name: str, url: str) -> ModelListCache | None:
    return ModelListCache(folder, name, url) if folder else None


def listed_endpoints(settings: DiscoverySettings) -> tuple[Endpoint, ...]:
    """Every service whose models can be listed."""
    packaged = (settings.local_endpoint,) if settings.local_endpoint else ()
    return (*settings.providers, *local_endpoints(settings), *packaged)


def all_endpoints(settings: DiscoverySettings) -> tuple[Endpoint, ...]:
    """Every service that a model can be asked of."""
    return (*listed_endpoints(settings), *settings.unlisted)


async def find_first_model(settings: DiscoverySettings, client: HttpClient) -> DiscoveredModel | None:
    """The best model of the most wanted service that answers. All are asked at once; nobody waits for the rest."""
    asked = [asyncio.ensure_future(_best_configured(endpoint, client)) for endpoint in settings.providers]
    asked += [asyncio.ensure_future(_best_running(endpoint, client)) for endpoint in local_endpoints(settings)]
    try:
        for task in asked:
            if (found := await task).model:
                return found
        return None
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def find_models(settings: DiscoverySettings, client: HttpClient) -> tuple[DiscoveredModel, ...]:
    """The best model of every service that answers; what is configured comes before what merely runs."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_best_configured(endpoint, client)) for endpoint in settings.providers]
        asked += [group.create_task(_best_running(endpoint, client)) for endpoint in local_endpoints(settings)]
    return tuple(found for task in asked if (found := task.result()).model)


async def fetch_models(endpoint: Endpoint, client: HttpClient) -> tuple[ModelInfo, ...]:
    """The models of a service, as it lists them now; the list is kept. Raises ProviderError."""
    models = await create_provider(endpoint, client).models()
    if endpoint.model_list_cache and models:
        endpoint.model_list_cache.write(models)
    return models


async def list_models(endpoint: Endpoint, client: HttpClient, seconds: float = ASK_SECONDS) -> tuple[ModelInfo, ...]:
    """The models of a service; none if it does not answer in time, or not with a list."""
    last = endpoint.model_list_cache.read() if endpoint.model_list_cache and not endpoint.local else None
    if last and last.is_fresh:
        return last.models
    try:
        async with asyncio.timeout(seconds):
            return await fetch_models(endpoint, client)
    except (ProviderError, TimeoutError):
        return ()


def ollama_url(host: str) -> str:
    """The address for any form of OLLAMA_HOST: `host`, `host:port`, `:port`, `http://…`; 0.0.0.0 is this machine."""
    host = host.strip()
    parts = urlsplit(host if "://" in host else f"//{host}")
    name = parts.hostname or "0.0.0.0"
    name = "127.0.0.1" if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 11434)
    # Its own dialect lives beside the one of OpenAI, not below it.
    path = parts.path.rstrip("/").removesuffix("/v1").removesuffix("/api")
    return f"{parts.scheme or 'http'}://{name}:{port}{path}"


async def _best_configured(endpoint: Endpoint, client: HttpClient) -> DiscoveredModel:
    """The best of what a service lists; where it lists nothing, of what the configuration says it has."""
    models = await list_models(endpoint, client)
    return DiscoveredModel(
        endpoint, pick_best_model([info.name for info in models] or endpoint.models), "it is configured"
    )


async def _best_running(endpoint: Endpoint, client: HttpClient) -> DiscoveredModel:
    models = await list_models(endpoint, client, PROBE_SECONDS)
    return DiscoveredModel(
        endpoint, pick_best_model(info.name for info in models), f"it answers at {endpoint.base_url}"
    )
