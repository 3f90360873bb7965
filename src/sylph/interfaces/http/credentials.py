"""The keys of model services over HTTP: written, never read back."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from sylph.access import credentials_of
from sylph.core.errors import NotFound, UserError
from sylph.core.similar import guess
from sylph.interfaces.connected import Connected, Offered, connected, offered
from sylph.interfaces.http.house import House
from sylph.interfaces.http.models import ProviderView, provider_view
from sylph.interfaces.http.route import Routes

routes = Routes("credentials")


class CredentialsView(Struct, frozen=True, kw_only=True):
    """What is connected, and never more of it than its last characters."""

    connected: list[Connected]
    keep: str
    """Where a new key is kept."""
    offered: list[Offered]
    """All that can be connected."""


class CredentialBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: Annotated[str, Meta(min_length=1, max_length=8000, description="The key. It is never told again.")]
    check: Annotated[bool, Meta(description="Have the service look at it first.")] = True


class Saved(Struct, frozen=True, kw_only=True):
    provider: str
    tail: str
    models: int | None = None
    """How many models it opens; null where that was not checked."""
    comes_after: str = ""
    """What is set too, and comes before it."""


class Removed(Struct, frozen=True, kw_only=True):
    provider: str
    forgotten: list[str]
    still_set: str = ""
    """A variable or file that still has a key."""


@routes.get("/credentials", scope="admin", gives=CredentialsView)
async def list_(house: House) -> CredentialsView:
    """Every key and login with where it comes from."""
    config = house.app.config
    store = credentials_of(config, str)
    rows = await asyncio.to_thread(lambda: list(connected(config, store)))
    return CredentialsView(connected=rows, keep=store.where(), offered=offered(config))


@routes.put(
    "/credentials/{provider}", scope="admin", gives=Saved, errors=(404, 409), example=CredentialBody(key="sk-…")
)
async def save(house: House, provider: str, body: CredentialBody) -> Saved:
    """Save a key, after the service was asked whether it is good."""
    from sylph.interfaces import saving

    app, config = house.app, house.app.config
    key = body.key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UserError("That is not a key: it has to be one word of plain characters.", next=["copy it once more"])
    app.runtime.veil.guard(key, f"{provider}-key")
    name = saving.provider_named(provider, config)
    store = credentials_of(config, str)
    store.ready()
    endpoint = saving.opened_by(name, key, config)
    models = await saving.check(endpoint, app.client) if body.check else None
    async with house.editing:
        entry = await asyncio.to_thread(saving.keep_key, store, endpoint, key)
        _renew(house)
    return Saved(provider=name, tail=entry.tail, models=models, comes_after=config.origins.get(_key(name), ""))


@routes.delete("/credentials/{provider}", scope="admin", gives=Removed, errors=(404,))
async def remove(house: House, provider: str) -> Removed:
    """Forget the key and the login of a service. What it gave out stays good until you revoke it there."""
    config = house.app.config
    store = credentials_of(config, str)
    known = store.kinds()
    if provider not in known:
        raise NotFound(f"Nothing of {provider!r} is stored.{guess(provider, known)}", next=["GET /api/v1/credentials"])
    async with house.editing:
        gone = await asyncio.to_thread(store.remove, provider)
        _renew(house)
    return Removed(provider=provider, forgotten=list(gone), still_set=config.origins.get(_key(provider), ""))


@routes.post("/credentials/{provider}/test", scope="admin", gives=ProviderView, errors=(404,))
async def test(house: House, provider: str) -> ProviderView:
    """Ask a service with the key that is set up whether it answers; `trouble` tells what is wrong."""
    heard = {one.name: one for one in await house.services.heard(house.app, fresh=True)}
    if provider not in heard:
        raise NotFound(f"{provider!r} is not set up.{guess(provider, heard)}", next=["GET /api/v1/providers"])
    return provider_view(heard[provider])


def _key(provider: str) -> str:
    return f"providers.{provider}.api_key"


def _renew(house: House) -> None:
    house.live.reconnect()
    house.services.forget()
