"""Saving a key: the service looks at it first, and only then it is kept."""

import asyncio

import msgspec

from sylph.config import Config
from sylph.core.errors import ProviderError, UserError
from sylph.core.similar import guess
from sylph.interfaces.clean import clean
from sylph.net.http import Client
from sylph.providers.credentials.entry import Entry, tail_of
from sylph.providers.credentials.lock import alone
from sylph.providers.credentials.store import Store
from sylph.providers.endpoint import Endpoint
from sylph.providers.exchange import get
from sylph.providers.logins.saved import Key
from sylph.providers.speak import speak
from sylph.providers.table import TABLE, row
from sylph.services import endpoint_for, missing

SECONDS = 20.0
# Services that show their models to everybody: this is what only a good key opens.
PRIVATE = {"openrouter": "key"}


def provider_named(name: str, config: Config) -> str:
    """The provider that keeps the key: one service may speak two dialects. Raises UserError where there is none."""
    rows, told = TABLE, config.settings.providers
    if name in rows:
        return rows[name].like or name
    if name in told:
        return name
    raise UserError(
        f"There is no provider {name!r}.{guess(name, [*rows, *told])}",
        kind="not_found",
        next=[
            f"the providers are {', '.join(each for each in rows if not rows[each].local)}",
            f"sylph config set providers.{name}.base_url URL  for another service",
        ],
    )


def opened_by(name: str, key: str, config: Config) -> Endpoint:
    """The service that a key is for. Raises UserError where it is none that a key opens."""
    told = row(name)
    if told.entry == "google":
        raise UserError(f"{told.title} is not opened by a key.", next=missing(name, config))
    endpoint = endpoint_for(name, key, config)
    if endpoint is None:
        raise UserError(f"Where {told.title} is, is not known yet.", kind="config", next=missing(name, config))
    return endpoint


async def check(endpoint: Endpoint, client: Client) -> int:
    """How many models the key opens. Raises UserError where the service does not take it, or does not answer."""
    try:
        async with asyncio.timeout(SECONDS):
            if path := PRIVATE.get(endpoint.name):
                await get(client, endpoint, path)
            return len(await speak(endpoint, client).models())
    except (ProviderError, TimeoutError) as error:
        refused = isinstance(error, ProviderError) and error.failure == "auth"
        said = str(error) if isinstance(error, ProviderError) else f"{endpoint.base_url} does not answer."
        raise UserError(
            f"The key was not kept. {clean(said)}",
            kind="key_refused" if refused else "not_checked",
            next=["copy the key once more"] if refused else ["--no-check keeps it without asking the service"],
        ) from error


def keep_key(store: Store, endpoint: Endpoint, key: str) -> Entry:
    entry = Entry(provider=endpoint.name, kind="key", tail=tail_of(key), base_url=endpoint.base_url)
    return keep(store, entry, msgspec.json.encode(Key(key)))


def keep(store: Store, entry: Entry, secret: bytes) -> Entry:
    store.prepare()
    with alone(store.folder.lock(entry.provider)):
        return store.keep(entry, secret)
