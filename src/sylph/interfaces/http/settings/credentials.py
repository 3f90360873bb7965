"""The keys of model services over HTTP: written, never read back."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from sylph.compose.credentials import open_credential_store
from sylph.core.errors import NotFound, UserError
from sylph.core.text.suggestion import suggest_word
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.settings.models import ProviderView, provider_view
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.reports.credential_report import (
    ConnectableProvider,
    ConnectedCredential,
    list_connectable_providers,
    list_connected_credentials,
)

routes = RouteGroup("credentials")


class CredentialsView(Struct, frozen=True, kw_only=True):
    """What is connected, and never more of it than its last characters."""

    connected: list[ConnectedCredential]
    keep: str
    """Where a new key is kept."""
    offered: list[ConnectableProvider]
    """All that can be connected."""


class CredentialBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: Annotated[str, Meta(min_length=1, max_length=8000, description="The key. It is never told again.")]
    check: Annotated[bool, Meta(description="Have the service look at it first.")] = True


class SavedCredential(Struct, frozen=True, kw_only=True):
    provider: str
    tail: str
    models: int | None = None
    """How many models it opens; null where that was not checked."""
    comes_after: str = ""
    """What is set too, and comes before it."""


class RemovedCredential(Struct, frozen=True, kw_only=True):
    provider: str
    forgotten: list[str]
    still_set: str = ""
    """A variable or file that still has a key."""


@routes.get("/credentials", scope="admin", gives=CredentialsView)
async def list_credentials(server: ServerState) -> CredentialsView:
    """Every key and login with where it comes from."""
    config = server.app.config
    store = open_credential_store(config, str)
    rows = await asyncio.to_thread(lambda: list(list_connected_credentials(config, store)))
    return CredentialsView(connected=rows, keep=store.describe_location(), offered=list_connectable_providers(config))


@routes.put(
    "/credentials/{provider}",
    scope="admin",
    gives=SavedCredential,
    errors=(404, 409),
    example=CredentialBody(key="sk-…"),
)
async def save_credential(server: ServerState, provider: str, body: CredentialBody) -> SavedCredential:
    """Save a key, after the service was asked whether it is good."""
    from sylph.interfaces.actions import credential_storage

    app, config = server.app, server.app.config
    key = body.key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UserError("That is not a key: it has to be one word of plain characters.", next=["copy it once more"])
    app.runtime.redactor.add_secret(key, f"{provider}-key")
    name = credential_storage.resolve_provider(provider, config)
    store = open_credential_store(config, str)
    store.check_ready()
    endpoint = credential_storage.endpoint_for_key(name, key, config)
    models = await credential_storage.check_key(endpoint, app.client) if body.check else None
    async with server.edit_lock:
        entry = await asyncio.to_thread(credential_storage.save_key, store, endpoint, key)
        _reload_providers(server)
    return SavedCredential(
        provider=name, tail=entry.tail, models=models, comes_after=config.origins.get(_api_key_path(name), "")
    )


@routes.delete("/credentials/{provider}", scope="admin", gives=RemovedCredential, errors=(404,))
async def remove_credential(server: ServerState, provider: str) -> RemovedCredential:
    """Forget the key and the login of a service. What it gave out stays good until you revoke it there."""
    config = server.app.config
    store = open_credential_store(config, str)
    known = store.preferred_kinds()
    if provider not in known:
        raise NotFound(
            f"Nothing of {provider!r} is stored.{suggest_word(provider, known)}", next=["GET /api/v1/credentials"]
        )
    async with server.edit_lock:
        gone = await asyncio.to_thread(store.remove, provider)
        _reload_providers(server)
    return RemovedCredential(
        provider=provider, forgotten=list(gone), still_set=config.origins.get(_api_key_path(provider), "")
    )


@routes.post("/credentials/{provider}/test", scope="admin", gives=ProviderView, errors=(404,))
async def test_credential(server: ServerState, provider: str) -> ProviderView:
    """Ask a service with the key that is set up whether it answers; `trouble` tells what is wrong."""
    heard = {one.name: one for one in await server.provider_status.get_providers(server.app, fresh=True)}
    if provider not in heard:
        raise NotFound(f"{provider!r} is not set up.{suggest_word(provider, heard)}", next=["GET /api/v1/providers"])
    return provider_view(heard[provider])


def _api_key_path(provider: str) -> str:
    return f"providers.{provider}.api_key"


def _reload_providers(server: ServerState) -> None:
    server.live_config.reload_credentials()
    server.provider_status.invalidate()
