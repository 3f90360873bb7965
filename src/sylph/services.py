"""The services that are set up, out of the configuration and the table of providers."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from sylph.config import Config, Model, Provider
from sylph.core.errors import UserError
from sylph.core.provider import ModelInfo
from sylph.providers import discover, table
from sylph.providers.endpoint import Endpoint, Login, on_this_machine
from sylph.providers.local import models as local
from sylph.providers.table import TABLE, Row

# Other ways in than a key.
OTHERWISE = {
    "aws": "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "google": 'or: sylph config set providers.vertex.key_command "gcloud auth print-access-token"',
}


def sources_of(config: Config, rows: Mapping[str, Row] = TABLE) -> discover.Settings:
    """Where models may come from: what is configured, then what runs on this machine."""
    told = config.settings.providers
    found = {name: made for name, each in told.items() if (made := _endpoint(rows, name, each, config))}
    twins = (
        replace(found[row.like], name=name, dialect=row.dialect, quirks=frozenset(row.quirks))
        for name, row in rows.items()
        if row.like in found and name not in found
    )
    return discover.Settings(
        providers=tuple(found.values()),
        twins=tuple(twins),
        probe=config.settings.probe,
        packaged=_packaged(config),
    )


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
        steps.append(f"set {owner.keys[0]} to a key of {owner.title}{where}")
        steps += [OTHERWISE[owner.entry]] if owner.entry in OTHERWISE else []
    if owner.entry in ("github", "chatgpt"):
        steps.append(f"sylph connect {owner.name}")
    return tuple(steps)


def _fill(row: Row, blank: str) -> str:
    variables = " or ".join(row.blanks.get(blank, ()))
    return f"set {variables}, or providers.{row.name}.place.{blank}: it is a part of the address of {row.title}"


def _endpoint(rows: Mapping[str, Row], name: str, told: Provider, config: Config) -> Endpoint | None:
    row = table.row(name, rows)
    url = _url(row, told, config)
    if name not in rows and not url:
        raise UserError(
            f"{config.file}: providers.{name}.base_url: where this service is, is missing.",
            kind="config",
            next=[f"sylph config set providers.{name}.base_url http://host:port/v1"],
        )
    key, login = _way_in(row, told, config)
    if not url or not (told.base_url or key or login or row.local):
        # Only prices, windows or a region are told of it: nobody said that it is to be used.
        return None
    return Endpoint(
        name=name,
        base_url=url,
        dialect=told.dialect or row.dialect,
        login=login,
        api_key=key,
        key_from=_key_from(name, told, config),
        key_header=row.key_header if told.dialect in ("", row.dialect) else "",
        headers={**row.headers, **told.headers},
        quirks=frozenset(row.quirks),
        websocket=told.websocket,
        own=not told.base_url or table.address(row, told.place) == url,
        models={id: _info(id, model) for id, model in told.models.items()},
        local=on_this_machine(url),
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


def _key_from(name: str, told: Provider, config: Config) -> str:
    """Where people have to look if the key is wrong."""
    if told.key_command and not told.api_key:
        return f"providers.{name}.key_command"
    if told.place.get("access") and not told.api_key:
        return "AWS_ACCESS_KEY_ID"
    return config.origins.get(f"providers.{name}.api_key", f"providers.{name}.api_key")


def _url(row: Row, told: Provider, config: Config) -> str:
    """Where it is. The vendors' variables are written in the vendors' ways."""
    if not told.base_url:
        return table.address(row, told.place)
    if config.origins.get(f"providers.{row.name}.base_url") != row.url_from:
        return told.base_url.rstrip("/")
    return (
        discover.ollama_url(told.base_url)
        if row.url_from == "OLLAMA_HOST"
        else table.whole(row, told.base_url, told.place)
    )


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
