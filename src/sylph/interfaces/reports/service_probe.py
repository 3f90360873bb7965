"""Which model services answer, asked all at once and not for long."""

import asyncio
from contextlib import suppress

from msgspec import Struct

from sylph.app import App
from sylph.config.setting_path import mask_secret
from sylph.core.errors import ErrorReport, ProviderError, UserError
from sylph.core.provider import ModelInfo
from sylph.providers import discover
from sylph.providers.endpoint import Endpoint


class ProbedService(Struct, frozen=True, kw_only=True):
    """One service: its models, or why it does not tell them."""

    name: str
    url: str
    dialect: str
    configured: bool
    models: tuple[ModelInfo, ...] = ()
    trouble: ErrorReport | None = None
    key_from: str = ""
    """Where its key comes from, with the end of it; empty where it has none."""
    elsewhere: str = ""
    """That a key is kept, but for another address."""


async def probe_services(app: App, *, seconds: float) -> list[ProbedService]:
    """Every configured service, and those on this machine that answer."""
    with suppress(UserError):  # Each service tells of it then.
        app.unlock_credentials()
    configured = {endpoint.name for endpoint in discover.configured_endpoints(app.sources)}
    asked = await asyncio.gather(
        *(_probe_service(app, each, each.name in configured, seconds) for each in app.endpoints)
    )
    return [one for one in asked if one.configured or one.models]


async def _probe_service(app: App, endpoint: Endpoint, configured: bool, seconds: float) -> ProbedService:  # noqa: FBT001
    found: tuple[ModelInfo, ...] = ()
    trouble = None
    try:
        async with asyncio.timeout(seconds if configured else discover.PROBE_SECONDS):
            found = await discover.fetch_models(endpoint, app.client)
    except ProviderError as error:
        trouble = error.trouble
    except TimeoutError:
        trouble = ErrorReport("timeout", f"no answer within {seconds:.0f} s")
    last = endpoint.model_list_cache.read() if trouble and configured and endpoint.model_list_cache else None
    known = found or (last.models if last else ()) or tuple(endpoint.models.values())
    return ProbedService(
        name=endpoint.name,
        url=endpoint.base_url,
        dialect=endpoint.dialect,
        configured=configured,
        models=known,
        trouble=trouble,
        key_from=_key_origin(endpoint),
        elsewhere=endpoint.elsewhere,
    )


def _key_origin(endpoint: Endpoint) -> str:
    if endpoint.api_key:
        return f"{endpoint.key_from} ({mask_secret(endpoint.api_key)})"
    return endpoint.key_from if endpoint.login else ""
