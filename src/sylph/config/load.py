"""The only reader of the environment and of the config file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sylph.config.setting_path import find_faults, flatten_table, join_path, set_value, split_path
from sylph.config.settings import ProviderSettings, Settings
from sylph.core.errors import UserError
from sylph.providers.vendors.table import vendor_variables

# Each variable stands for one key of the file, and wins over it.
SETTING_VARIABLES = {"SYLPH_MODEL": "model", "SYLPH_LOG_LEVEL": "log_level", **vendor_variables()}


PASSPHRASE_VARIABLE = "SYLPH_PASSPHRASE"
SEARCH_KEY_VARIABLES = {"tavily": "TAVILY_API_KEY", "brave": "BRAVE_API_KEY"}


class ProxyEnvironment(Struct, frozen=True, kw_only=True):
    http: str = ""
    https: str = ""
    no: str = ""


class TerminalEnvironment(Struct, frozen=True, kw_only=True):
    """What the environment says about the terminal and the person's own programs."""

    kind: str = ""
    colour: bool = True
    editor: str = ""

    @property
    def dumb(self) -> bool:
        """Whether it can only write one line after the other."""
        return self.kind in ("", "dumb")


class Config(Struct, frozen=True, kw_only=True):
    """All that was configured. `origins` tells where a key's value comes from; what is not in it is a default."""

    home: Path
    data: Path
    file: Path
    settings: Settings = Settings()
    origins: dict[str, str] = {}
    proxy: ProxyEnvironment = ProxyEnvironment()
    terminal: TerminalEnvironment = TerminalEnvironment()
    environ: dict[str, str] = {}
    """Without the passphrase: nobody who gets these variables needs it."""
    passphrase: str = ""


def load_config(environ: Mapping[str, str], text: str | None = None) -> Config:
    """The configuration, from the environment and the file it names, or with another text in the place of the file's.

    Raises UserError where something is wrong.
    """
    place = locate_config(environ)
    told = read_config_file(place.file) if text is None else _parse_toml(text, place.file)
    origins = {key: str(place.file) for key, _ in flatten_table(told)}
    for variable, key in SETTING_VARIABLES.items():
        # Where two stand for one key, the first of them counts.
        if (value := environ.get(variable)) and origins.get(key) not in SETTING_VARIABLES:
            set_value(told, split_path(key), value.lower() if key == "log_level" else value)
            origins[key] = variable
    settings = _with_api_keys(convert_settings(told, origins), environ, origins)
    settings = _with_search_key(settings, environ, origins)
    return replace(place, settings=settings, origins=origins)


def locate_config(environ: Mapping[str, str]) -> Config:
    """Where everything lies, with default settings: for what must work though the config file is wrong."""
    home = _path_variable(environ, "SYLPH_HOME", "~/.sylph")
    return Config(
        home=home,
        data=_path_variable(environ, "SYLPH_DATA", str(home / "data")),
        file=_path_variable(environ, "SYLPH_CONFIG", str(home / "config.toml")),
        proxy=_read_proxy(environ),
        terminal=_read_terminal(environ),
        environ={name: value for name, value in environ.items() if name != PASSPHRASE_VARIABLE},
        passphrase=environ.get(PASSPHRASE_VARIABLE, ""),
    )


def read_config_file(file: Path) -> dict[str, Any]:
    """The file's tables; none where there is no file."""
    try:
        return _parse_toml(file.read_text(encoding="utf-8"), file)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _config_error(f"{file} cannot be read: {error}", file) from error


def _parse_toml(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _config_error(f"{file} is not valid TOML: {error}", file) from error


def convert_settings(told: dict[str, Any], origins: Mapping[str, str]) -> Settings:
    """The typed settings, or a UserError that names the first wrong key and who set it."""
    for fault in find_faults(told):
        where = next((source for key, source in origins.items() if key.startswith(fault.key)), "config")
        raise _config_error(f"{where}: {fault.key}: {fault.message}", Path(where))
    return msgspec.convert(told, Settings)


def _config_error(message: str, source: Path) -> UserError:
    first = f"change or unset {source}" if str(source) in SETTING_VARIABLES else "sylph config edit"
    return UserError(message, kind="config", details={"source": source}, next=[first, "sylph config schema"])


def _with_api_keys(settings: Settings, environ: Mapping[str, str], origins: dict[str, str]) -> Settings:
    """The settings with each `api_key_env` looked up."""
    found: dict[str, ProviderSettings] = {}
    for name, provider in settings.providers.items():
        key = "" if provider.api_key else environ.get(provider.api_key_env, "")
        found[name] = replace(provider, api_key=key) if key else provider
        if key:
            origins[join_path("providers", name, "api_key")] = provider.api_key_env
    return replace(settings, providers=found)


def _with_search_key(settings: Settings, environ: Mapping[str, str], origins: dict[str, str]) -> Settings:
    """The settings with the key of the search service looked up."""
    search = settings.web.search
    variable = search.api_key_env or SEARCH_KEY_VARIABLES.get(search.provider, "")
    key = "" if search.api_key else environ.get(variable, "")
    if not key:
        return settings
    origins["web.search.api_key"] = variable
    return replace(settings, web=replace(settings.web, search=replace(search, api_key=key)))


def _path_variable(environ: Mapping[str, str], variable: str, default: str) -> Path:
    return Path(environ.get(variable) or default).expanduser().absolute()


def _read_proxy(environ: Mapping[str, str]) -> ProxyEnvironment:
    def told(name: str) -> str:
        return environ.get(name.lower()) or environ.get(name) or ""

    return ProxyEnvironment(http=told("HTTP_PROXY"), https=told("HTTPS_PROXY"), no=told("NO_PROXY"))


def _read_terminal(environ: Mapping[str, str]) -> TerminalEnvironment:
    kind = environ.get("TERM", "")
    return TerminalEnvironment(
        kind=kind,
        colour=not environ.get("NO_COLOR") and kind != "dumb",
        editor=environ.get("VISUAL") or environ.get("EDITOR") or "",
    )
