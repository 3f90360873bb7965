"""The credentials that are set up, out of the configuration: where they lie, and which logins there can be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from sylph.config import Config
from sylph.core.errors import UserError
from sylph.core.text.suggestion import suggest_word
from sylph.net.http_client import HttpClient

if TYPE_CHECKING:
    from sylph.providers.credentials.store import CredentialStore
    from sylph.providers.logins.credential_sources import CredentialSources
    from sylph.providers.logins.oauth import OAuthService

PassphrasePrompt = Callable[[], str]
"""Gets the passphrase from a person; empty where there is none."""


def credentials_folder(config: Config) -> Path:
    return config.home / "credentials"


def open_credential_store(config: Config, ask: PassphrasePrompt) -> "CredentialStore":
    from sylph.providers.credentials.store import CredentialStore

    keep = config.settings.credentials.keep
    return CredentialStore(credentials_folder(config), keep=keep, passphrase=config.passphrase, ask=ask)


def build_credential_sources(
    config: Config, client: HttpClient, ask: PassphrasePrompt, opened: Callable[[str, str], None]
) -> "CredentialSources | None":
    """The ways in that were stored; `opened` hears of each secret. Where there are none, nothing is imported."""
    check_login_names(config)
    if not credentials_folder(config).is_dir():
        return None
    from sylph.providers.logins.credential_sources import CredentialSources

    return CredentialSources(
        open_credential_store(config, ask),
        client,
        services=lambda: login_services(config),
        environ=config.environ,
        opened=opened,
    )


def login_services(config: Config) -> Mapping[str, "OAuthService"]:
    """Where one can log in, as it is configured; without a client id it is off."""
    from sylph.providers.logins import chatgpt, copilot

    told = config.settings.logins
    known = {each.name: each for each in (chatgpt.SERVICE, copilot.SERVICE)}
    return {
        name: replace(each, **_nonempty_values(told[name])) if name in told else each for name, each in known.items()
    }


def check_login_names(config: Config) -> None:
    """Raises UserError for a login that there is none for."""
    for name in config.settings.logins:
        if name not in LOGIN_NAMES:
            raise UserError(
                f"{config.file}: logins.{name}: nobody knows how to log in there.{suggest_word(name, LOGIN_NAMES)}",
                kind="config",
                next=[f"the logins are {', '.join(LOGIN_NAMES)}", "sylph config edit"],
            )


LOGIN_NAMES = ("chatgpt", "copilot")


def _nonempty_values(told: msgspec.Struct) -> dict[str, str]:
    return {name: value for name, value in msgspec.structs.asdict(told).items() if value}
