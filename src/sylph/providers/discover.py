"""What there is to think with: the services that are configured, and the model servers that run on this machine."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field

from sylph.core.errors import ProviderError
from sylph.core.provider import ModelInfo
from sylph.net.http import Client
from sylph.providers.choose import best
from sylph.providers.endpoint import Endpoint
from sylph.providers.kept import Kept
from sylph.providers.speak import speak
from sylph.providers.table import ROWS, row

# Where model servers usually listen on this machine.
LOCAL: Mapping[str, str] = {row.name: row.base_url for row in ROWS if row.local}
# A server on this machine answers at once or not at all; a service in the net may take a moment.
PROBE_SECONDS = 0.3
ASK_SECONDS = 10.0


class Settings(Struct, frozen=True, kw_only=True):
    """The services that are set up, most wanted first, and whether and where to look for more on this machine."""

    providers: tuple[Endpoint, ...] = ()
    twins: tuple[Endpoint, ...] = ()
    """The same services in another dialect, and those that nobody chose: used where they are named, and not listed."""
    probe: bool = True
    places: Mapping[str, str] = field(default_factory=lambda: LOCAL)
    lists: Path | None = None
    """Where the lists of models are kept."""
    packaged: Endpoint | None = None
    """The models in files of this machine, which have to be started first."""


class Found(Struct, frozen=True):
    """A model that can be used now, and why we think so."""

    provider: Endpoint
    model: str
    why: str


def configured(settings: Settings) -> tuple[Endpoint, ...]:
    return settings.providers


def local(settings: Settings) -> tuple[Endpoint, ...]:
    """Where model servers usually listen on this machine, without what is configured anyway."""
    if not settings.probe:
        return ()
    taken = {known for endpoint in settings.providers for known in (endpoint.name, endpoint.base_url)}
    places = ((name, url) for name, url in settings.places.items() if not {name, url} & taken)
    return tuple(
        Endpoint(name=name, base_url=url, dialect=row(name).dialect, local=True, kept=kept(settings.lists, name, url))
        for name, url in places
    )


def kept(folder: Path | None, name: str, url: str) -> Kept | None:
    return Kept(folder, name, url) if folder else None


def offered(settings: Settings) -> tuple[Endpoint, ...]:
    """Every service whose models can be listed."""
    packaged = (settings.packaged,) if settings.packaged else ()
    return (*settings.providers, *local(settings), *packaged)


def named(settings: Settings) -> tuple[Endpoint, ...]:
    """Every service that a model can be asked of."""
    return (*offered(settings), *settings.twins)


async def first(settings: Settings, client: Client) -> Found | None:
    """The best model of the most wanted service that answers. All are asked at once; nobody waits for the rest."""
    asked = [asyncio.ensure_future(_told(endpoint, client)) for endpoint in settings.providers]
    asked += [asyncio.ensure_future(_running(endpoint, client)) for endpoint in local(settings)]
    try:
        for task in asked:
            if (found := await task).model:
                return found
        return None
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def find(settings: Settings, client: Client) -> tuple[Found, ...]:
    """The best model of every service that answers; what is configured comes before what merely runs."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_told(endpoint, client)) for endpoint in settings.providers]
        asked += [group.create_task(_running(endpoint, client)) for endpoint in local(settings)]
    return tuple(found for task in asked if (found := task.result()).model)


async def ask(endpoint: Endpoint, client: Client) -> tuple[ModelInfo, ...]:
    """The models of a service, as it lists them now; the list is kept. Raises ProviderError."""
    models = await speak(endpoint, client).models()
    if endpoint.kept and models:
        endpoint.kept.write(models)
    return models


async def listed(endpoint: Endpoint, client: Client, seconds: float = ASK_SECONDS) -> tuple[ModelInfo, ...]:
    """The models of a service; none if it does not answer in time, or not with a list."""
    last = endpoint.kept.read() if endpoint.kept and not endpoint.local else None
    if last and last.fresh:
        return last.models
    try:
        async with asyncio.timeout(seconds):
            return await ask(endpoint, client)
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


async def _told(endpoint: Endpoint, client: Client) -> Found:
    """The best of what a service lists; where it lists nothing, of what the configuration says it has."""
    models = await listed(endpoint, client)
    return Found(endpoint, best([info.name for info in models] or endpoint.models), "it is configured")


async def _running(endpoint: Endpoint, client: Client) -> Found:
    models = await listed(endpoint, client, PROBE_SECONDS)
    return Found(endpoint, best(info.name for info in models), f"it answers at {endpoint.base_url}")
