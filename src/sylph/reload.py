"""A changed configuration, taken up by a program that runs: as much of it as can be changed under way."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from sylph.access import folder_of, services_named, ways_of
from sylph.app import App
from sylph.config import Config, load
from sylph.config.budget import budget_of
from sylph.config.keys import effective
from sylph.config.load import PASSPHRASE
from sylph.core.errors import UserError
from sylph.core.rules import check
from sylph.engine.sandbox.hosts import rules_of
from sylph.faculties import courier
from sylph.providers import discover, tour
from sylph.providers.speak import Spoken
from sylph.services import local_folder, sources_of
from sylph.wiring import bounds_of, consent_of, limits_of, patience_of, routes_of

# What a running program takes up at once, the next turn, call or session being the first to go by it.
LIVE = (
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
SERVICES = ("providers", "local", "logins", "credentials", "probe")
logger = logging.getLogger(__name__)
JOURNAL = "sylph.journal"
Stamp = tuple[int, int, int] | None


def is_live(key: str) -> bool:
    return _under(key, LIVE)


class Live:
    """Keeps a program up to its config file. What it cannot take up waits for the next start."""

    def __init__(self, app: App) -> None:
        self._app, self._began = app, app.config
        self._stamp = _stamp(app.config.file)
        self._keys = _found(app.config)
        self.trouble: UserError | None = None
        """Why the file as it is now cannot be used; what counted before counts on."""
        self.told: Callable[[], None] = lambda: None
        """Called after each change, wherever it came from."""

    @property
    def pending(self) -> list[str]:
        """The keys whose values in the file count from the next start on."""
        return sorted(key for key in _changed(self._began, self._app.config) if not is_live(key))

    def look(self) -> None:
        """Takes up the file, the credentials and the models on this machine, if somebody else has changed them."""
        stamp = _stamp(self._app.config.file)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self.take()
            except UserError as error:
                self.trouble = error
                self.told()
        if (keys := _found(self._app.config)) != self._keys:
            self._keys = keys
            try:
                self.reconnect()
            except UserError as error:
                logger.warning("what was connected or installed cannot be taken up: %s", error)

    def take(self) -> list[str]:
        """Reads the file, takes up what can be, and tells which keys have changed. Raises UserError; then all stays."""
        fresh = self.read()
        changed = _changed(self._app.config, fresh)
        self._adopt(fresh, services=any(_under(key, SERVICES) for key in changed))
        self._stamp, self.trouble = _stamp(fresh.file), None
        self.told()
        return sorted(changed)

    def read(self, text: str | None = None) -> Config:
        """The configuration that the file, or a text in its place, amounts to. Raises UserError where it is wrong."""
        config = self._app.config
        fresh = load({**config.environ, PASSPHRASE: config.passphrase}, text)
        sources_of(fresh, ways=self._app.ways)
        services_named(fresh)
        rules_of(fresh.settings.sandbox.hosts)
        for number, rule in enumerate(fresh.settings.rules, 1):
            if wrong := check(rule):
                raise UserError(f"rules: rule {number}: {wrong}.", kind="config", next=["sylph config edit"])
        return fresh

    def reconnect(self) -> None:
        """Takes up credentials that were saved or removed."""
        self._adopt(self._app.config, services=True)
        self.told()

    def _adopt(self, config: Config, *, services: bool) -> None:
        app, gateway = self._app, self._app.runtime.parts.gateway
        spoken = gateway.providers
        if services:
            for name, each in config.settings.providers.items():
                app.runtime.veil.guard(each.api_key, f"{name}-key")
            known = app.ways.store.answer if app.ways else ""
            ways = ways_of(config, app.client, lambda: known, app.runtime.veil.guard)
            sources = sources_of(config, ways=ways)
            spoken = Spoken(discover.named(sources), app.client, tour.Tour())
            app.ways, app.sources = ways, sources
        parts = replace(
            app.runtime.parts,
            limits=limits_of(config),
            routes=routes_of(config),
            consent=consent_of(config),
            bounds=bounds_of(config),
        )
        app.runtime.adopt(parts)
        gateway.adopt(spoken, patience_of(config))
        app.purse.budget = budget_of(config.settings.budget)
        _redirect(parts.courier, config)
        set_levels(config)
        app.config = config


def _found(config: Config) -> dict[Path, Stamp]:
    """What other commands put down or take away: `connect`, `models install`. Logins renew themselves, keys do not."""
    folders = (folder_of(config), local_folder(config))
    paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.suffix != ".lock"]
    return {path: _stamp(path) if path.name.endswith(".key.json") else None for path in paths}


def set_levels(config: Config) -> None:
    """What is logged: the journal of the server by its own level, all else by `log_level`."""
    root, told = logging.getLogger(), config.settings
    for handler in root.handlers:
        handler.setLevel((told.logs.level if handler.name == JOURNAL else told.log_level).upper())
    root.setLevel(min((handler.level for handler in root.handlers), default=logging.WARNING))


def _redirect(way: object, config: Config) -> None:
    told = config.settings.notify
    if isinstance(way, courier.SetUp):
        way.webhook, way.command, way.on = told.webhook, told.command, told.on


def _changed(old: Config, new: Config) -> set[str]:
    before, after = effective(old.settings), effective(new.settings)
    return {key for key in before.keys() | after.keys() if not _same(before, after, key)}


def _same(before: Mapping[str, object], after: Mapping[str, object], key: str) -> bool:
    return key in before and key in after and before[key] == after[key]


def _under(key: str, names: Iterable[str]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in names)


def _stamp(file: Path) -> Stamp:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
