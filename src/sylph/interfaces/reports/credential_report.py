"""What is connected: every key and login with where it comes from, and never more of it than its last characters."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from sylph.compose.credentials import login_services
from sylph.compose.models import provider_url
from sylph.config import Config
from sylph.config.setting_path import mask_secret
from sylph.core.errors import StoreError
from sylph.interfaces.text.render import one_line
from sylph.providers.vendors.table import VENDORS_BY_NAME, find_vendor

if TYPE_CHECKING:
    from sylph.providers.credentials.entry import CredentialEntry
    from sylph.providers.credentials.store import CredentialStore


class ConnectedCredential(Struct, frozen=True, kw_only=True):
    """One way in to a provider. `used` is the one that is taken where there are several."""

    provider: str
    kind: str
    key_from: str
    key: str = ""
    account: str = ""
    state: str = "ok"
    used: bool = True
    next: str = ""


class ConnectableProvider(Struct, frozen=True, kw_only=True):
    """A provider that a key can be saved for, or that only its address is told of."""

    name: str
    title: str
    url: str = ""
    """Where it is asked; empty where that has to be told first."""
    entry: str = "key"
    """How one gets in: `key`, `none`, or the kind of a login."""
    console: str = ""
    """Where people get a key."""


def list_connectable_providers(config: Config) -> list[ConnectableProvider]:
    """Every provider that is known by name, and those that the configuration names."""
    rows = [each for each in VENDORS_BY_NAME.values() if not each.variant_of]
    own = [find_vendor(name) for name in config.settings.providers if name not in VENDORS_BY_NAME]
    return [
        ConnectableProvider(
            name=each.name,
            title=each.title,
            url=provider_url(each.name, config),
            entry=each.auth_method,
            console=each.console,
        )
        for each in (*own, *rows)
    ]


def list_connected_credentials(config: Config, store: "CredentialStore") -> Iterator[ConnectedCredential]:
    """In the order in which they are taken."""
    for name, told in config.settings.providers.items():
        if told.api_key:
            origin = config.origins.get(f"providers.{name}.api_key", "")
            yield ConnectedCredential(provider=name, kind="key", key_from=origin, key=mask_secret(told.api_key))
    keyed = {name for name, told in config.settings.providers.items() if told.api_key}
    kinds = store.preferred_kinds()
    for entry in store.list_entries():
        if isinstance(entry, StoreError):
            yield _damaged_credential(entry)
        else:
            used = entry.provider not in keyed and kinds.get(entry.provider) == entry.kind
            yield _stored_credential(entry, config, used=used)


def _stored_credential(entry: "CredentialEntry", config: Config, *, used: bool) -> ConnectedCredential:
    from sylph.providers.logins.credential_sources import describe_entry, is_same_origin

    state, step = "ok", ""
    if entry.ended:
        state, step = "over", f"log in again: sylph connect {entry.provider}  ({one_line(entry.ended, 200)})"
    elif entry.kind == "login" and not _login_client_id(config, entry.provider):
        state, step = "off", f"it cannot be renewed without logins.{entry.provider}.client_id"
    elif (
        entry.kind == "key"
        and (url := provider_url(entry.provider, config))
        and not is_same_origin(entry.base_url, url)
    ):
        state = "for another address"
        step = f"it is for {entry.base_url} and not sent to {url}: sylph connect {entry.provider}  saves one for there"
    elif entry.expires and entry.expires < time.time():
        state = "renewed when it is used"
    return ConnectedCredential(
        provider=entry.provider,
        kind=entry.kind,
        key_from=describe_entry(entry),
        key=entry.tail,
        account=entry.account,
        state=state,
        used=used,
        next=step,
    )


def _login_client_id(config: Config, provider: str) -> str:
    service = login_services(config).get(provider)
    return service.client_id if service else ""


def _damaged_credential(error: StoreError) -> ConnectedCredential:
    name = error.trouble.details.get("path", "").rpartition("/")[2].partition(".")[0]
    return ConnectedCredential(
        provider=name, kind="?", key_from=str(error), state="damaged", used=False, next=f"sylph disconnect {name}"
    )
