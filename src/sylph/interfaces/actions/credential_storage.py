"""Saving a key: the service looks at it first, and only then it is kept."""

import asyncio

import msgspec

from sylph.compose.models import endpoint_for, missing_steps
from sylph.config import Config
from sylph.core.errors import ProviderError, UserError
from sylph.core.text.suggestion import suggest_word
from sylph.interfaces.text.sanitize import sanitize_text
from sylph.net.http_client import HttpClient
from sylph.providers.credentials.entry import CredentialEntry, secret_tail
from sylph.providers.credentials.file_lock import hold_lock
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.endpoint import Endpoint
from sylph.providers.logins.saved_key import SavedKeySecret
from sylph.providers.registry import create_provider
from sylph.providers.stream.exchange import fetch_document
from sylph.providers.vendors.table import VENDORS_BY_NAME, find_vendor

CHECK_SECONDS = 20.0
# Services that show their models to everybody: this is what only a good key opens.
KEY_CHECK_PATHS = {"openrouter": "key"}


def resolve_provider(name: str, config: Config) -> str:
    """The provider that keeps the key: one service may speak two dialects. Raises UserError where there is none."""
    rows, told = VENDORS_BY_NAME, config.settings.providers
    if name in rows:
        return rows[name].variant_of or name
    if name in told:
        return name
    raise UserError(
        f"There is no provider {name!r}.{suggest_word(name, [*rows, *told])}",
        kind="not_found",
        next=[
            f"the providers are {', '.join(each for each in rows if not rows[each].local)}",
            f"sylph config set providers.{name}.base_url URL  for another service",
        ],
    )


def endpoint_for_key(name: str, key: str, config: Config) -> Endpoint:
    """The service that a key is for. Raises UserError where it is none that a key opens."""
    told = find_vendor(name)
    if told.auth_method == "google":
        raise UserError(f"{told.title} is not opened by a key.", next=missing_steps(name, config))
    endpoint = endpoint_for(name, key, config)
    if endpoint is None:
        raise UserError(f"Where {told.title} is, is not known yet.", kind="config", next=missing_steps(name, config))
    return endpoint


async def check_key(endpoint: Endpoint, client: HttpClient) -> int:
    """How many models the key opens. Raises UserError where the service does not take it, or does not answer."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            if path := KEY_CHECK_PATHS.get(endpoint.name):
                await fetch_document(client, endpoint, path)
            return len(await create_provider(endpoint, client).models())
    except (ProviderError, TimeoutError) as error:
        refused = isinstance(error, ProviderError) and error.failure == "auth"
        said = str(error) if isinstance(error, ProviderError) else f"{endpoint.base_url} does not answer."
        raise UserError(
            f"The key was not kept. {sanitize_text(said)}",
            kind="key_refused" if refused else "not_checked",
            next=["copy the key once more"] if refused else ["--no-check keeps it without asking the service"],
        ) from error


def save_key(store: CredentialStore, endpoint: Endpoint, key: str) -> CredentialEntry:
    entry = CredentialEntry(provider=endpoint.name, kind="key", tail=secret_tail(key), base_url=endpoint.base_url)
    return save_credential(store, entry, msgspec.json.encode(SavedKeySecret(key)))


def save_credential(store: CredentialStore, entry: CredentialEntry, secret: bytes) -> CredentialEntry:
    store.prepare_passphrase()
    with hold_lock(store.folder.lock_path(entry.provider)):
        return store.save_entry(entry, secret)
