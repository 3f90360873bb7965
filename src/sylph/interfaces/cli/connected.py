"""What is connected: every key and login with where it comes from, and never more of it than its last characters."""

import time
from collections.abc import Iterator

from msgspec import Struct

from sylph.access import credentials_of, services_of
from sylph.config import Config
from sylph.config.keys import mask
from sylph.core.errors import StoreError
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.render import flat
from sylph.providers.credentials.entry import Entry
from sylph.providers.credentials.others import TOOLS, found
from sylph.providers.credentials.store import Store
from sylph.providers.logins.ways import same_place, told_of
from sylph.providers.table import TABLE
from sylph.services import address_of


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


def show(door: Door, *, as_json: bool) -> int:
    config = door.config
    store = credentials_of(config, str)
    rows = list(connected(config, store))
    others = [(tool, path) for tool in TOOLS if (path := found(tool, config.environ)) and not _taken(rows, tool.title)]
    if as_json:
        told = [
            {"tool": tool.name, "title": tool.title, "provider": tool.provider, "path": path} for tool, path in others
        ]
        return put_json({"connected": rows, "others": told, "keep": store.where()})
    if rows:
        cells = [[row.provider, row.kind, row.key or row.account or "-", _state(row), row.key_from] for row in rows]
        put_table([["PROVIDER", "KIND", "KEY", "STATE", "FROM"], *cells], drop=(4, 1))
    else:
        put("Nothing is connected.")
    for row in rows:
        if row.next:
            put(f"{row.provider}: {row.next}")
    if others:
        put("\nOther tools have credentials here. Sylph has not read them, and does so only after your yes:")
        for tool, path in others:
            put(f"  {tool.title} ({path}): sylph connect {tool.provider} --from {tool.name}")
    put(f"\nA new key is kept in {store.where()}.\nsylph connect PROVIDER, with one of: {', '.join(_offered(config))}")
    return 0


def connected(config: Config, store: Store) -> Iterator[Connected]:
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


def _stored(entry: Entry, config: Config, *, used: bool) -> Connected:
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


def _state(row: Connected) -> str:
    return row.state if row.used else f"{row.state}, another comes first" if row.state == "ok" else row.state


def _taken(rows: list[Connected], title: str) -> bool:
    return any(row.kind == "borrowed" and row.key_from.endswith(title) for row in rows)


def _offered(config: Config) -> list[str]:
    rows = [name for name, row in TABLE.items() if not row.local and not row.like and row.entry != "google"]
    return [*rows, *(name for name in config.settings.providers if name not in TABLE)]
