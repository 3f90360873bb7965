"""The services that are set up, out of the configuration and the table of providers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sylph.config import Config, ModelSettings, ProviderSettings
from sylph.core.errors import UserError
from sylph.core.provider import ModelInfo
from sylph.providers import discover
from sylph.providers.endpoint import Endpoint, TokenSource, on_this_machine
from sylph.providers.local import models as local
from sylph.providers.vendors import table
from sylph.providers.vendors.table import VENDORS_BY_NAME, Vendor

if TYPE_CHECKING:
    from sylph.providers.logins.credential_sources import CredentialSource, CredentialSources

# Other ways in than a key.
OTHER_CREDENTIAL_HINTS = {
    "aws": "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "google": 'or: sylph config set providers.vertex.key_command "gcloud auth print-access-token"',
}


def build_model_sources(
    config: Config, rows: Mapping[str, Vendor] = VENDORS_BY_NAME, ways: "CredentialSources | None" = None
) -> discover.DiscoverySettings:
    """Where models may come from: what is configured or connected, then what runs on this machine."""
    known = config.settings.providers
    told = {**known, **{name: ProviderSettings() for name in rows if ways and name in ways and name not in known}}
    found = {
        name: made
        for name, each in told.items()
        if (made := _build_endpoint(rows, name, each, config, _stored_credential(ways, name, each)))
    }
    twins = (
        replace(found[row.variant_of], name=name, dialect=row.dialect, quirks=frozenset(row.quirks))
        for name, row in rows.items()
        if row.variant_of in found and name not in found
    )
    shy = {
        name
        for name in found
        if _only_by_name(table.find_vendor(name, rows), told[name], config) and not (ways and name in ways)
    }
    return discover.DiscoverySettings(
        providers=tuple(each for name, each in found.items() if name not in shy),
        unlisted=(*(found[name] for name in sorted(shy)), *twins),
        probe=config.settings.probe,
        cache_folder=lists_folder(config),
        local_endpoint=_local_endpoint(config),
    )


def lists_folder(config: Config) -> Path:
    """Where the services' lists of models are kept."""
    return config.data / "models"


def local_folder(config: Config) -> Path:
    """Where the runtime and the small model are, if they are installed."""
    return config.home / local.NAME


def _local_endpoint(config: Config) -> Endpoint | None:
    told = config.settings.local
    models = {
        name: local.AddedModelFile(path=each.path, window=each.window, tools=each.tools)
        for name, each in told.models.items()
    }
    terms = local.LocalRuntimeTerms(
        models=models, threads=told.threads, idle_seconds=told.idle_seconds, environ=config.environ
    )
    return local.build_local_endpoint(local_folder(config), terms)


def missing_steps(name: str, config: Config, rows: Mapping[str, Vendor] = VENDORS_BY_NAME) -> tuple[str, ...]:
    """What a known provider still needs before it can be used."""
    row = rows.get(name)
    if row is None:
        return ()
    owner = rows.get(row.variant_of, row)
    told = config.settings.providers.get(owner.name, ProviderSettings())
    steps = [_fill_hint(owner, blank) for blank in table.missing_placeholders(owner, told.place) if not told.base_url]
    if owner.key_variables and not told.api_key and owner.auth_method != "none":
        where = f" (get one at {owner.console})" if owner.console else ""
        key = f"sylph connect {owner.name}, or set {owner.key_variables[0]} to a key of {owner.title}{where}"
        # What opens it lasts for an hour, so none is kept.
        token = f'export {owner.key_variables[0]}="$(gcloud auth print-access-token)"'
        steps.append(token if owner.auth_method == "google" else key)
        steps += [OTHER_CREDENTIAL_HINTS[owner.auth_method]] if owner.auth_method in OTHER_CREDENTIAL_HINTS else []
    if owner.auth_method in ("github", "chatgpt"):
        steps.append(f"sylph connect {owner.name}")
    return tuple(steps)


def _fill_hint(row: Vendor, blank: str) -> str:
    variables = " or ".join(row.placeholder_variables.get(blank, ()))
    return f"set {variables}, or providers.{row.name}.place.{blank}: it is a part of the address of {row.title}"


def endpoint_for(name: str, key: str, config: Config, rows: Mapping[str, Vendor] = VENDORS_BY_NAME) -> Endpoint | None:
    """The service with this key instead of the one that is set up; None where something else of it is missing."""
    told = config.settings.providers.get(name, ProviderSettings())
    return _build_endpoint(rows, name, replace(told, api_key=key), config, None)


def _stored_credential(
    ways: "CredentialSources | None", name: str, told: ProviderSettings
) -> "CredentialSource | None":
    """What was stored for a provider; what the environment or the config file says comes first."""
    return ways.find_source(name) if ways and not (told.api_key or told.key_command) else None


def _build_endpoint(
    rows: Mapping[str, Vendor], name: str, told: ProviderSettings, config: Config, way: "CredentialSource | None"
) -> Endpoint | None:
    row = table.find_vendor(name, rows)
    url = _base_url(row, told, config)
    if way and way.base_url and not told.base_url:
        url = way.base_url
    if name not in rows and not url:
        raise UserError(
            f"{config.file}: providers.{name}.base_url: where this service is, is missing.",
            kind="config",
            next=[f"sylph config set providers.{name}.base_url http://host:port/v1"],
        )
    key, login = _resolve_key(row, told, config)
    way = None if key or login else way
    if not url or not (told.base_url or key or login or way or row.local):
        # Only prices, windows or a region are told of it: nobody said that it is to be used.
        return None
    way = way.limited_to(url) if way else None
    bare = told.dialect not in ("", row.dialect) or (way and way.bearer)
    return Endpoint(
        name=name,
        base_url=url,
        dialect=told.dialect or row.dialect,
        login=way.login if way else login,
        api_key=key,
        key_from=way.key_from if way else _key_origin(name, told, config),
        elsewhere=way.elsewhere if way else "",
        back=_revert_command(name, config) if way and way.elsewhere else "",
        key_header="" if bare else row.key_header,
        headers={**row.headers, **(way.headers if way else {}), **told.headers},
        quirks=frozenset(row.quirks),
        websocket=told.websocket,
        is_official=not told.base_url or table.vendor_url(row, told.place) == url,
        models={id: _model_info(id, model) for id, model in told.models.items()},
        local=on_this_machine(url),
        model_list_cache=discover.open_model_cache(lists_folder(config), name, url),
    )


def _resolve_key(row: Vendor, told: ProviderSettings, config: Config) -> tuple[str, TokenSource | None]:
    """A key that lasts, or a way to one that does not."""
    if told.api_key or not (told.key_command or row.auth_method == "aws"):
        return told.api_key, None
    # Only those who need them wait for these.
    from sylph.providers.logins.aws_profile import AwsProfileTokenSource, keys_from_environ
    from sylph.providers.logins.key_command import CommandTokenSource

    if told.key_command:
        return "", CommandTokenSource(told.key_command, config.environ)
    if key := keys_from_environ(config.environ):
        return key, None
    home = Path(config.environ.get("HOME") or Path.home())
    profile = told.place.get("profile", "")
    return "", AwsProfileTokenSource(profile, config.environ, home) if profile else None


def _only_by_name(row: Vendor, told: ProviderSettings, config: Config) -> bool:
    """Whether it is used only where it is named: keys for all of Amazon lie about for many reasons, and models cost."""
    profile = config.origins.get(f"providers.{row.name}.place.profile", "")
    chosen = (
        told.api_key
        or told.key_command
        or told.base_url
        or (profile and profile not in row.placeholder_variables["profile"])
    )
    return row.auth_method == "aws" and not chosen


def _key_origin(name: str, told: ProviderSettings, config: Config) -> str:
    """Where people have to look if the key is wrong."""
    if told.key_command and not told.api_key:
        return f"providers.{name}.key_command"
    if told.place.get("access") and not told.api_key:
        return "AWS_ACCESS_KEY_ID"
    return config.origins.get(f"providers.{name}.api_key", f"providers.{name}.api_key")


def _revert_command(name: str, config: Config) -> str:
    """How to get to the usual address again."""
    key = f"providers.{name}.base_url"
    origin = config.origins.get(key, "")
    return f"unset {origin}" if origin.isupper() else f"sylph config unset {key}"


def provider_url(name: str, config: Config) -> str:
    """Where a provider is asked now; empty where that is not known."""
    return _base_url(table.find_vendor(name), config.settings.providers.get(name, ProviderSettings()), config)


def _base_url(row: Vendor, told: ProviderSettings, config: Config) -> str:
    """Where it is. The vendors' variables are written in the vendors' ways."""
    if not told.base_url:
        return table.vendor_url(row, told.place)
    if row.dialect == "ollama" and told.dialect in ("", row.dialect):
        return discover.ollama_url(told.base_url)
    if config.origins.get(f"providers.{row.name}.base_url") != row.url_variable:
        return told.base_url.rstrip("/")
    return table.complete_url(row, told.base_url, told.place)


def _model_info(id: str, told: ModelSettings) -> ModelInfo:
    return ModelInfo(
        name=id,
        window=told.window,
        price_in=_to_micros(told.price_in),
        price_out=_to_micros(told.price_out),
        price_cached=_to_micros(told.price_cached),
    )


def _to_micros(dollars: float | None) -> int | None:
    return None if dollars is None else round(dollars * 1e6)
