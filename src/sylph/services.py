"""The services that are set up, out of the configuration and the table of providers."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from sylph.config import Config, Model, Provider
from sylph.core.errors import UserError
from sylph.core.provider import ModelInfo
from sylph.providers import discover, table
from sylph.providers.endpoint import Endpoint, on_this_machine
from sylph.providers.local import models as local
from sylph.providers.table import TABLE, Row


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
    if not url or not (told.base_url or told.api_key or row.local):
        # Only prices, windows or a region are told of it: nobody said that it is to be used.
        return None
    return Endpoint(
        name=name,
        base_url=url,
        dialect=told.dialect or row.dialect,
        api_key=told.api_key,
        key_from=config.origins.get(f"providers.{name}.api_key", f"providers.{name}.api_key"),
        key_header=row.key_header if told.dialect in ("", row.dialect) else "",
        headers={**row.headers, **told.headers},
        quirks=frozenset(row.quirks),
        websocket=told.websocket,
        own=not told.base_url or table.address(row, told.place) == url,
        models={id: _info(id, model) for id, model in told.models.items()},
        local=on_this_machine(url),
    )


def _url(row: Row, told: Provider, config: Config) -> str:
    """Where it is. The vendors' variables are written in the vendors' ways."""
    if not told.base_url:
        return table.address(row, told.place)
    if config.origins.get(f"providers.{row.name}.base_url") != row.url_from:
        return told.base_url.rstrip("/")
    return discover.ollama_url(told.base_url) if row.url_from == "OLLAMA_HOST" else table.whole(row, told.base_url)


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
