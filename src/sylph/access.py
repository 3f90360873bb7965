"""The credentials that are set up, out of the configuration: where they lie, and which logins there can be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from sylph.config import Config
from sylph.core.errors import UserError
from sylph.core.similar import guess
from sylph.net.http import Client

if TYPE_CHECKING:
    from sylph.providers.credentials.store import Store
    from sylph.providers.logins.oauth import Service
    from sylph.providers.logins.ways import Ways

Ask = Callable[[], str]
"""Gets the passphrase from a person; empty where there is none."""


def folder_of(config: Config) -> Path:
    return config.home / "credentials"


def credentials_of(config: Config, ask: Ask) -> "Store":
    from sylph.providers.credentials.store import Store

    keep = config.settings.credentials.keep
    return Store(folder_of(config), keep=keep, passphrase=config.passphrase, ask=ask)


def ways_of(config: Config, client: Client, ask: Ask, opened: Callable[[str, str], None]) -> "Ways | None":
    """The ways in that were stored; `opened` hears of each secret. Where there are none, nothing is imported."""
    services_named(config)
    if not folder_of(config).is_dir():
        return None
    from sylph.providers.logins.ways import Ways

    return Ways(
        credentials_of(config, ask), client, services=lambda: services_of(config), environ=config.environ, opened=opened
    )


def services_of(config: Config) -> Mapping[str, "Service"]:
    """Where one can log in, as it is configured; without a client id it is off."""
    from sylph.providers.logins import chatgpt, copilot

    told = config.settings.logins
    known = {each.name: each for each in (chatgpt.SERVICE, copilot.SERVICE)}
    return {name: replace(each, **_set(told[name])) if name in told else each for name, each in known.items()}


def services_named(config: Config) -> None:
    """Raises UserError for a login that there is none for."""
    for name in config.settings.logins:
        if name not in LOGINS:
            raise UserError(
                f"{config.file}: logins.{name}: nobody knows how to log in there.{guess(name, LOGINS)}",
                kind="config",
                next=[f"the logins are {', '.join(LOGINS)}", "sylph config edit"],
            )


LOGINS = ("chatgpt", "copilot")


def _set(told: msgspec.Struct) -> dict[str, str]:
    return {name: value for name, value in msgspec.structs.asdict(told).items() if value}
