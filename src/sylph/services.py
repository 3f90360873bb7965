"""The services that are set up, out of the configuration and the table of providers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sylph.config import Config, Model, Provider
from sylph.core.errors import UserError
from sylph.core.provider import ModelInfo
from sylph.providers import discover, table
from sylph.providers.endpoint import Endpoint, Login, on_this_machine
from sylph.providers.local import models as local
from sylph.providers.table import TABLE, Row

if TYPE_CHECKING:
    from sylph.providers.logins.ways import Way, Ways

# Other ways in than a key.
OTHERWISE = {
    "aws": "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "google": 'or: sylph config set providers.vertex.key_command "gcloud auth print-access-token"',
}


def sources_of(config: Config, rows: Mapping[str, Row] = TABLE, ways: "Ways | None" = None) -> discover.Settings:
    """Where models may come from: what is configured or connected, then what runs on this machine."""
    known = config.settings.providers
    told = {**known, **{name: Provider() for name in rows if ways and name in ways and name not in known}}
    found = {
        name: made
        for name, each in told.items()
        if (made := _endpoint(rows, name, each, config, _way(ways, name, each)))
    }
    twins = (
        replace(found[row.like], name=name, dialect=row.dialect, quirks=frozenset(row.quirks))
        for name, row in rows.items()
        if row.like in found and name not in found
    )
    shy = {name for name in found if _shy(table.row(name, rows), told[name], config) and not (ways and name in ways)}
    return discover.Settings(
        providers=tuple(each for name, each in found.items() if name not in shy),
        twins=(*(found[name] for name in sorted(shy)), *twins),
        probe=config.settings.probe,
        lists=lists_folder(config),
        packaged=_packaged(config),
    )


def lists_folder(config: Config) -> Path:
    """Where the services' lists of models are kept."""
    return config.data / "models"


def local_folder(config: Config) -> Path:
    """Where the runtime and the small model are, if they are installed."""
    return config.home / local.NAME


def _packaged(config: Config) -> Endpoint | None:
    told = config.settings.local
    models = {
        name: local.Told(path=each.path, window=each.window, tools=each.tools) for name, each in told.models.items()
    }
    terms = local.Terms(models=models, threads=told.threads, idle_seconds=told.idle_seconds, environ=config.environ)
    return local.endpoint(local_folder(config), terms)


def missing(name: str, config: Config, rows: Mapping[str, Row] = TABLE) -> tuple[str, ...]:
    """What a known provider still needs before it can be used."""
    row = rows.get(name)
    if row is None:
        return ()
    owner = rows.get(row.like, row)
    told = config.settings.providers.get(owner.name, Provider())
    steps = [_fill(owner, blank) for blank in table.blanks(owner, told.place) if not told.base_url]
    if owner.keys and not told.api_key and owner.entry != "none":
        where = f" (get one at {owner.console})" if owner.console else ""
        key = f"sylph connect {owner.name}, or set {owner.keys[0]} to a key of {owner.title}{where}"
        # What opens it lasts for an hour, so none is kept.
        token = f'export {owner.keys[0]}="$(gcloud auth print-access-token)"'
        steps.append(token if owner.entry == "google" else key)
        steps += [OTHERWISE[owner.entry]] if owner.entry in OTHERWISE else []
    if owner.entry in ("github", "chatgpt"):
        steps.append(f"sylph connect {owner.name}")
    return tuple(steps)


def _fill(row: Row, blank: str) -> str:
    variables = " or ".join(row.blanks.get(blank, ()))
    return f"set {variables}, or providers.{row.name}.place.{blank}: it is a part of the address of {row.title}"


def endpoint_for(name: str, key: str, config: Config, rows: Mapping[str, Row] = TABLE) -> Endpoint | None:
    """The service with this key instead of the one that is set up; None where something else of it is missing."""
    told = config.settings.providers.get(name, Provider())
    return _endpoint(rows, name, replace(told, api_key=key), config, None)


def _way(ways: "Ways | None", name: str, told: Provider) -> "Way | None":
    """What was stored for a provider; what the environment or the config file says comes first."""
    return ways.find(name) if ways and not (told.api_key or told.key_command) else None


def _endpoint(rows: Mapping[str, Row], name: str, told: Provider, config: Config, way: "Way | None") -> Endpoint | None:
    row = table.row(name, rows)
    url = _url(row, told, config)
    if way and way.base_url and not told.base_url:
        url = way.base_url
    if name not in rows and not url:
        raise UserError(
            f"{config.file}: providers.{name}.base_url: where this service is, is missing.",
            kind="config",
            next=[f"sylph config set providers.{name}.base_url http://host:port/v1"],
        )
    key, login = _way_in(row, told, config)
    way = None if key or login else way
    if not url or not (told.base_url or key or login or way or row.local):
        # Only prices, windows or a region are told of it: nobody said that it is to be used.
        return None
    way = way.sent_to(url) if way else None
    bare = told.dialect not in ("", row.dialect) or (way and way.bearer)
    return Endpoint(
        name=name,
        base_url=url,
        dialect=told.dialect or row.dialect,
        login=way.login if way else login,
        api_key=key,
        key_from=way.key_from if way else _key_from(name, told, config),
        elsewhere=way.elsewhere if way else "",
        back=_back(name, config) if way and way.elsewhere else "",
        key_header="" if bare else row.key_header,
        headers={**row.headers, **(way.headers if way else {}), **told.headers},
        quirks=frozenset(row.quirks),
        websocket=told.websocket,
        own=not told.base_url or table.address(row, told.place) == url,
        models={id: _info(id, model) for id, model in told.models.items()},
        local=on_this_machine(url),
        kept=discover.kept(lists_folder(config), name, url),
    )


def _way_in(row: Row, told: Provider, config: Config) -> tuple[str, Login | None]:
    """A key that lasts, or a way to one that does not."""
    if told.api_key or not (told.key_command or row.entry == "aws"):
        return told.api_key, None
    # Only those who need them wait for these.
    from sylph.providers.aws_keys import Profile, from_variables
    from sylph.providers.command_key import CommandKey

    if told.key_command:
        return "", CommandKey(told.key_command, config.environ)
    if key := from_variables(config.environ):
        return key, None
    home = Path(config.environ.get("HOME") or Path.home())
    profile = told.place.get("profile", "")
    return "", Profile(profile, config.environ, home) if profile else None


def _shy(row: Row, told: Provider, config: Config) -> bool:
    """Whether it is used only where it is named: keys for all of Amazon lie about for many reasons, and models cost."""
    profile = config.origins.get(f"providers.{row.name}.place.profile", "")
    chosen = told.api_key or told.key_command or told.base_url or (profile and profile not in row.blanks["profile"])
    return row.entry == "aws" and not chosen


def _key_from(name: str, told: Provider, config: Config) -> str:
    """Where people have to look if the key is wrong."""
    if told.key_command and not told.api_key:
        return f"providers.{name}.key_command"
    if told.place.get("access") and not told.api_key:
        return "AWS_ACCESS_KEY_ID"
    return config.origins.get(f"providers.{name}.api_key", f"providers.{name}.api_key")


def _back(name: str, config: Config) -> str:
    """How to get to the usual address again."""
    key = f"providers.{name}.base_url"
    origin = config.origins.get(key, "")
    return f"unset {origin}" if origin.isupper() else f"sylph config unset {key}"


def address_of(name: str, config: Config) -> str:
    """Where a provider is asked now; empty where that is not known."""
    return _url(table.row(name), config.settings.providers.get(name, Provider()), config)


def _url(row: Row, told: Provider, config: Config) -> str:
    """Where it is. The vendors' variables are written in the vendors' ways."""
    if not told.base_url:
        return table.address(row, told.place)
    if row.dialect == "ollama" and told.dialect in ("", row.dialect):
        return discover.ollama_url(told.base_url)
    if config.origins.get(f"providers.{row.name}.base_url") != row.url_from:
        return told.base_url.rstrip("/")
    return table.whole(row, told.base_url, told.place)


def _info(id: str, told: Model) -> ModelInfo:
    return ModelInfo(
        name=id,
        window=told.window,
        price_in=_micros(told.price_in),
        price_out=_micros(told.price_out),
        price_cached=_micros(told.price_cached),
    )


def _micros(dollars: float | None) -> int | None:
    return None if dollars is None else round(dollars * 1e6)
