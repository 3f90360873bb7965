"""What is connected: every key and login with where it comes from, and never more of it than its last characters."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from sylph.access import services_of
from sylph.config import Config
from sylph.config.keys import mask
from sylph.core.errors import StoreError
from sylph.interfaces.render import flat
from sylph.providers.table import TABLE, row
from sylph.services import address_of

if TYPE_CHECKING:
    from sylph.providers.credentials.entry import Entry
    from sylph.providers.credentials.store import Store


class Connected(Struct, frozen=True, kw_only=True):
    """One way in to a provider. `used` is the one that is taken where there are several."""

    provider: str
    kind: str
    key_from: str
    key: str = ""
    account: str = ""
    state: str = "ok"
    used: bool = True
    next: str = ""


class Offered(Struct, frozen=True, kw_only=True):
    """A provider that a key can be saved for, or that only its address is told of."""

    name: str
    title: str
    url: str = ""
    """Where it is asked; empty where that has to be told first."""
    entry: str = "key"
    """How one gets in: `key`, `none`, or the kind of a login."""
    console: str = ""
    """Where people get a key."""


def offered(config: Config) -> list[Offered]:
    """Every provider that is known by name, and those that the configuration names."""
    rows = [each for each in TABLE.values() if not each.like]
    own = [row(name) for name in config.settings.providers if name not in TABLE]
    return [
        Offered(
            name=each.name,
            title=each.title,
            url=address_of(each.name, config),
            entry=each.entry,
            console=each.console,
        )
        for each in (*own, *rows)
    ]


def connected(config: Config, store: "Store") -> Iterator[Connected]:
    """In the order in which they are taken."""
    for name, told in config.settings.providers.items():
        if told.api_key:
            origin = config.origins.get(f"providers.{name}.api_key", "")
            yield Connected(provider=name, kind="key", key_from=origin, key=mask(told.api_key))
    keyed = {name for name, told in config.settings.providers.items() if told.api_key}
    kinds = store.kinds()
    for entry in store.entries():
        if isinstance(entry, StoreError):
            yield _damaged(entry)
        else:
            used = entry.provider not in keyed and kinds.get(entry.provider) == entry.kind
            yield _stored(entry, config, used=used)


def _stored(entry: "Entry", config: Config, *, used: bool) -> Connected:
    from sylph.providers.logins.ways import same_place, told_of

    state, step = "ok", ""
    if entry.ended:
        state, step = "over", f"log in again: sylph connect {entry.provider}  ({flat(entry.ended, 200)})"
    elif entry.kind == "login" and not _client(config, entry.provider):
        state, step = "off", f"it cannot be renewed without logins.{entry.provider}.client_id"
    elif entry.kind == "key" and (url := address_of(entry.provider, config)) and not same_place(entry.base_url, url):
        state = "for another address"
        step = f"it is for {entry.base_url} and not sent to {url}: sylph connect {entry.provider}  saves one for there"
    elif entry.expires and entry.expires < time.time():
        state = "renewed when it is used"
    return Connected(
        provider=entry.provider,
        kind=entry.kind,
        key_from=told_of(entry),
        key=entry.tail,
        account=entry.account,
        state=state,
        used=used,
        next=step,
    )


def _client(config: Config, provider: str) -> str:
    service = services_of(config).get(provider)
    return service.client_id if service else ""


def _damaged(error: StoreError) -> Connected:
    name = error.trouble.details.get("path", "").rpartition("/")[2].partition(".")[0]
    return Connected(
        provider=name, kind="?", key_from=str(error), state="damaged", used=False, next=f"sylph disconnect {name}"
    )
