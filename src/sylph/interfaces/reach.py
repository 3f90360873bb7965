"""Which model services answer, asked all at once and not for long."""

import asyncio
from contextlib import suppress

from msgspec import Struct

from sylph.app import App
from sylph.config.keys import mask
from sylph.core.errors import ProviderError, Trouble, UserError
from sylph.core.provider import ModelInfo
from sylph.providers import discover
from sylph.providers.endpoint import Endpoint


class Reached(Struct, frozen=True, kw_only=True):
    """One service: its models, or why it does not tell them."""

    name: str
    url: str
    dialect: str
    configured: bool
    models: tuple[ModelInfo, ...] = ()
    trouble: Trouble | None = None
    key_from: str = ""
    """Where its key comes from, with the end of it; empty where it has none."""
    elsewhere: str = ""
    """That a key is kept, but for another address."""


async def reach(app: App, *, seconds: float) -> list[Reached]:
    """Every configured service, and those on this machine that answer."""
    with suppress(UserError):  # Each service tells of it then.
        app.unlock()
    configured = {endpoint.name for endpoint in discover.configured(app.sources)}
    asked = await asyncio.gather(*(_ask(app, each, each.name in configured, seconds) for each in app.endpoints))
    return [one for one in asked if one.configured or one.models]


async def _ask(app: App, endpoint: Endpoint, configured: bool, seconds: float) -> Reached:  # noqa: FBT001
    found: tuple[ModelInfo, ...] = ()
    trouble = None
    try:
        async with asyncio.timeout(seconds if configured else discover.PROBE_SECONDS):
            found = await discover.ask(endpoint, app.client)
    except ProviderError as error:
        trouble = error.trouble
    except TimeoutError:
        trouble = Trouble("timeout", f"no answer within {seconds:.0f} s")
    last = endpoint.kept.read() if trouble and configured and endpoint.kept else None
    known = found or (last.models if last else ()) or tuple(endpoint.models.values())
    return Reached(
        name=endpoint.name,
        url=endpoint.base_url,
        dialect=endpoint.dialect,
        configured=configured,
        models=known,
        trouble=trouble,
        key_from=_key_from(endpoint),
        elsewhere=endpoint.elsewhere,
    )


def _key_from(endpoint: Endpoint) -> str:
    if endpoint.api_key:
        return f"{endpoint.key_from} ({mask(endpoint.api_key)})"
    return endpoint.key_from if endpoint.login else ""
