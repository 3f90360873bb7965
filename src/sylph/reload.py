"""A changed configuration, taken up by a program that runs: as much of it as can be changed under way."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from sylph.app import App
from sylph.compose.budget import build_budget
from sylph.compose.credentials import build_credential_sources, check_login_names, credentials_folder
from sylph.compose.engine import (
    build_approvals,
    build_call_limits,
    build_model_routes,
    build_retry_policy,
    build_turn_limits,
)
from sylph.compose.models import build_model_sources, local_folder
from sylph.config import Config, load_config
from sylph.config.load import PASSPHRASE_VARIABLE
from sylph.config.setting_path import effective_values
from sylph.core.errors import UserError
from sylph.core.permission.rules import check_rule
from sylph.engine.sandbox.host_allowlist import parse_hosts
from sylph.features.notify import channels
from sylph.providers import discover, scripted_tour
from sylph.providers.registry import ProviderRegistry

# What a running program takes up at once, the next turn, call or session being the first to go by it.
RELOADABLE_SETTINGS = (
    "model",
    "mode",
    "sandbox.enabled",
    "providers",
    "local",
    "roles",
    "logins",
    "credentials",
    "rules",
    "approvals",
    "limits.rounds",
    "limits.turn_seconds",
    "limits.first_seconds",
    "limits.idle_seconds",
    "limits.retries",
    "limits.concurrency",
    "limits.tool_seconds",
    "limits.command_memory",
    "limits.output_lines",
    "limits.output_bytes",
    "budget",
    "compaction",
    "notify",
    "probe",
    "log_level",
    "logs.level",
)
PROVIDER_TABLES = ("providers", "local", "logins", "credentials", "probe")
logger = logging.getLogger(__name__)
SERVER_LOG_HANDLER = "sylph.journal"
FileStamp = tuple[int, int, int] | None


def is_reloadable(key: str) -> bool:
    return _is_under(key, RELOADABLE_SETTINGS)


class ConfigReloader:
    """Keeps a program up to its config file. What it cannot take up waits for the next start."""

    def __init__(self, app: App) -> None:
        self._app, self._began = app, app.config
        self._stamp = _file_stamp(app.config.file)
        self._keys = _credential_stamps(app.config)
        self.trouble: UserError | None = None
        """Why the file as it is now cannot be used; what counted before counts on."""
        self.told: Callable[[], None] = lambda: None
        """Called after each change, wherever it came from."""

    @property
    def pending(self) -> list[str]:
        """The keys whose values in the file count from the next start on."""
        return sorted(key for key in _changed_settings(self._began, self._app.config) if not is_reloadable(key))

    def check_files(self) -> None:
        """Takes up the file, the credentials and the models on this machine, if somebody else has changed them."""
        stamp = _file_stamp(self._app.config.file)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self.reload_file()
            except UserError as error:
                self.trouble = error
                self.told()
        if (keys := _credential_stamps(self._app.config)) != self._keys:
            self._keys = keys
            try:
                self.reload_credentials()
            except UserError as error:
                logger.warning("what was connected or installed cannot be taken up: %s", error)

    def reload_file(self) -> list[str]:
        """Reads the file, takes up what can be, and tells which keys have changed. Raises UserError; then all stays."""
        fresh = self.read_config()
        changed = _changed_settings(self._app.config, fresh)
        self._apply_config(fresh, services=any(_is_under(key, PROVIDER_TABLES) for key in changed))
        self._stamp, self.trouble = _file_stamp(fresh.file), None
        self.told()
        return sorted(changed)

    def read_config(self, text: str | None = None) -> Config:
        """The configuration that the file, or a text in its place, amounts to. Raises UserError where it is wrong."""
        config = self._app.config
        fresh = load_config({**config.environ, PASSPHRASE_VARIABLE: config.passphrase}, text)
        build_model_sources(fresh, ways=self._app.credentials)
        check_login_names(fresh)
        parse_hosts(fresh.settings.sandbox.hosts)
        for number, rule in enumerate(fresh.settings.rules, 1):
            if wrong := check_rule(rule):
                raise UserError(f"rules: rule {number}: {wrong}.", kind="config", next=["sylph config edit"])
        return fresh

    def reload_credentials(self) -> None:
        """Takes up credentials that were saved or removed."""
        self._apply_config(self._app.config, services=True)
        self.told()

    def _apply_config(self, config: Config, *, services: bool) -> None:
        app, gateway = self._app, self._app.runtime.parts.gateway
        spoken = gateway.providers
        if services:
            for name, each in config.settings.providers.items():
                app.runtime.redactor.add_secret(each.api_key, f"{name}-key")
            known = app.credentials.store.entered_passphrase if app.credentials else ""
            ways = build_credential_sources(config, app.client, lambda: known, app.runtime.redactor.add_secret)
            sources = build_model_sources(config, ways=ways)
            spoken = ProviderRegistry(discover.all_endpoints(sources), app.client, scripted_tour.TourProvider())
            app.credentials, app.sources = ways, sources
        parts = replace(
            app.runtime.parts,
            limits=build_turn_limits(config),
            routes=build_model_routes(config),
            consent=build_approvals(config),
            output_limits=build_call_limits(config),
        )
        app.runtime.adopt_parts(parts)
        gateway.replace_providers(spoken, build_retry_policy(config))
        app.budget_ledger.budget = build_budget(config.settings.budget)
        _update_courier(parts.courier, config)
        set_log_levels(config)
        app.config = config


def _credential_stamps(config: Config) -> dict[Path, FileStamp]:
    """What other commands put down or take away: `connect`, `models install`. Logins renew themselves, keys do not."""
    folders = (credentials_folder(config), local_folder(config))
    paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.suffix != ".lock"]
    return {path: _file_stamp(path) if path.name.endswith(".key.json") else None for path in paths}


def set_log_levels(config: Config) -> None:
    """What is logged: the journal of the server by its own level, all else by `log_level`."""
    root, told = logging.getLogger(), config.settings
    for handler in root.handlers:
        handler.setLevel((told.logs.level if handler.name == SERVER_LOG_HANDLER else told.log_level).upper())
    root.setLevel(min((handler.level for handler in root.handlers), default=logging.WARNING))


def _update_courier(way: object, config: Config) -> None:
    told = config.settings.notify
    if isinstance(way, channels.ConfiguredCourier):
        way.webhook, way.command, way.on = told.webhook, told.command, told.on


def _changed_settings(old: Config, new: Config) -> set[str]:
    before, after = effective_values(old.settings), effective_values(new.settings)
    return {key for key in before.keys() | after.keys() if not _same_value(before, after, key)}


def _same_value(before: Mapping[str, object], after: Mapping[str, object], key: str) -> bool:
    return key in before and key in after and before[key] == after[key]


def _is_under(key: str, names: Iterable[str]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in names)


def _file_stamp(file: Path) -> FileStamp:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
