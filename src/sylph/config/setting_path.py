"""Dotted keys: the way into the settings, for checking, showing and changing them."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from sylph.config.settings import Settings
from sylph.core.errors import UserError
from sylph.core.text.suggestion import nearest_word, suggest_word

SECRET_SETTINGS = frozenset({"api_key", "client_secret", "webhook", "literals"})
# What stands in the reference for a name that the user chooses.
PLACEHOLDERS = {
    "providers": "NAME",
    "logins": "NAME",
    "models": "ID",
    "headers": "HEADER",
    "place": "BLANK",
    "labels": "LABEL",
    "patterns": "NAME",
}


class SettingFault(Struct, frozen=True):
    """One wrong value: at which key, and what is wrong with it."""

    key: str
    message: str


class SettingInfo(Struct, frozen=True, kw_only=True):
    """One key that can be set, as the reference shows it."""

    name: str
    type: str
    default: str
    help: str


def split_path(key: str) -> tuple[str, ...]:
    """A dotted key in parts. As in TOML, a name that holds dots is quoted."""
    try:
        table: Any = tomllib.loads(f"{key} = {{}}")
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{key!r} is not a key.", kind="config", next=["sylph config"]) from error
    parts: list[str] = []
    while table:
        if not isinstance(table, dict) or len(cast("dict[str, Any]", table)) > 1:
            raise UserError(f"{key!r} is not a key.", kind="config", next=["sylph config"])
        name, table = next(iter(cast("dict[str, Any]", table).items()))
        parts.append(name)
    return tuple(parts)


def join_path(*path: str) -> str:
    return ".".join(name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"' for name in path)


def set_value(table: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    """Sets a value in nested tables, making those that are missing."""
    *parents, last = path
    for name in parents:
        if not isinstance(table.get(name), dict):
            table[name] = {}
        table = table[name]
    table[last] = value


def as_table(value: object) -> dict[str, Any] | None:
    """The value, if it is a table."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def flatten_table(table: Mapping[str, Any], *path: str) -> Iterator[tuple[str, Any]]:
    """Each value of nested tables with its dotted key."""
    for name, value in table.items():
        if tables := as_table(value):
            yield from flatten_table(tables, *path, name)
        else:
            yield join_path(*path, name), value


def effective_values(settings: Settings) -> dict[str, Any]:
    """Every key's value, defaults included; None where a value is not known."""
    return dict(flatten_table(msgspec.to_builtins(settings)))


def format_value(key: str, value: object) -> str:
    """A value as it may be shown: secrets masked."""
    if value and is_secret(key):
        several = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
        return ", ".join(mask_secret(str(each)) for each in several)
    return "" if value is None else msgspec.json.encode(value, enc_hook=str).decode()


def is_secret(key: str) -> bool:
    """Whether its value is for nobody's eyes. A header may carry a key."""
    return key.rpartition(".")[2] in SECRET_SETTINGS or ".headers." in key


def mask_secret(secret: str) -> str:
    return f"…{secret[-4:]}" if len(secret) >= 16 else "…"


def find_faults(value: object, kind: Any = Settings, *path: str) -> Iterator[SettingFault]:
    """What is wrong with `value` as a `kind`, key by key."""
    if not is_table(kind):
        yield from _value_faults(value, kind, join_path(*path))
    elif (table := as_table(value)) is None:
        yield SettingFault(join_path(*path), f"expected a table (it is {value!r})")
    else:
        for name, item in table.items():
            inner = type_inside(kind, name)
            if inner is None:
                yield SettingFault(
                    join_path(*path, name), f"there is no such key.{suggest_word(name, field_names(kind))}"
                )
            else:
                yield from find_faults(item, inner, *path, name)


def _value_faults(value: object, kind: Any, key: str) -> Iterator[SettingFault]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        choices = choices_of(kind)
        said = f"must be one of {', '.join(choices)}" if choices else str(error).replace("`", "").lower()
        yield SettingFault(key, f"{said} (it is {format_value(key, value)})")
    else:
        yield from _pattern_faults(key, value)
        yield from _address_faults(key, value)


def _pattern_faults(key: str, value: object) -> Iterator[SettingFault]:
    """What is meant as a regular expression and is none: it would stop everything later."""
    if key == "redact.allow" or key.startswith("redact.patterns."):
        for each in cast("list[str]", value) if isinstance(value, list | tuple) else [str(value)]:
            try:
                re.compile(each)
            except re.error as error:
                yield SettingFault(key, f"{each!r} is no regular expression: {error}")


def _address_faults(key: str, value: object) -> Iterator[SettingFault]:
    """What is meant as the address of a service and is none: nobody could ever be reached there."""
    path = split_path(key) if key.endswith(".base_url") else ()
    # Ollama is told of as its own program has it: also without a scheme.
    loose = path[:2] == ("providers", "ollama")
    if path and value and not is_address(str(value), loose=loose):
        yield SettingFault(key, f"must be an address like https://host/v1 (it is {value!r})")


def is_address(text: str, *, loose: bool = False) -> bool:
    """Whether it is an HTTP address; `loose` also where it has no scheme."""
    try:
        parts = urlsplit(text if "://" in text or not loose else f"http://{text}")
        _ = parts.port
    except ValueError:
        return False
    named = bool(parts.hostname) or (loose and parts.netloc.startswith(":"))
    return parts.scheme in ("http", "https") and named and not any(char.isspace() for char in text)


def type_at(key: str) -> Any:
    """The type of the value at a dotted key. Raises UserError where there is none."""
    kind: Any = Settings
    for name in split_path(key):
        inner = type_inside(kind, name)
        if inner is None:
            near = _suggest_path(split_path(key))
            meant = f" Did you mean {near!r}?" if near else suggest_word(name, field_names(kind))
            raise UserError(f"There is no key {key!r}.{meant}", kind="config", next=["sylph config"])
        kind = inner
    return kind


def _suggest_path(path: tuple[str, ...]) -> str:
    """The whole key with each wrong part mended; empty where one cannot be."""
    kind: Any = Settings
    mended: list[str] = []
    for name in path:
        right = name if type_inside(kind, name) is not None else nearest_word(name, field_names(kind))
        if not right:
            return ""
        mended.append(right)
        kind = type_inside(kind, right)
    return join_path(*mended)


def list_settings(kind: Any = Settings, *path: str) -> Iterator[SettingInfo]:
    """Every key that can be set, for the reference."""
    for field in _struct_fields(kind):
        if get_origin(field.type) is dict:
            yield from _named_settings(get_args(field.type)[1], *path, field.name, PLACEHOLDERS[field.name])
        elif is_table(field.type):
            yield from list_settings(field.type, *path, field.name)
        else:
            yield _setting_info(field, *path, field.name)


def _named_settings(kind: Any, *path: str) -> Iterator[SettingInfo]:
    """The keys below a name that the user chooses: those of a table, or the one value."""
    if is_table(kind):
        yield from list_settings(kind, *path)
    else:
        plain, help = _split_annotation(kind)
        yield SettingInfo(name=".".join(path), type=plain.__name__, default="", help=help)


def _setting_info(field: FieldInfo, *path: str) -> SettingInfo:
    plain, help = _split_annotation(field.type)
    shown = "|".join(choices_of(field.type)) or ("list" if is_list(field.type) else plain.__name__)
    default = "" if field.default is None else msgspec.json.encode(field.default).decode()
    return SettingInfo(name=".".join(path), type=shown, default=default, help=help)


def is_table(kind: Any) -> bool:
    return get_origin(kind) is dict or bool(_struct_fields(kind))


def type_inside(kind: Any, name: str) -> Any:
    """The type that key `name` has in the table `kind`; None where there is no such key."""
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return next((field.type for field in _struct_fields(kind) if field.name == name), None)


def field_names(kind: Any) -> list[str]:
    return [field.name for field in _struct_fields(kind)]


def is_list(kind: Any) -> bool:
    return get_origin(_split_annotation(kind)[0]) in (list, tuple)


def choices_of(kind: Any) -> tuple[str, ...]:
    plain, _ = _split_annotation(kind)
    return get_args(plain) if get_origin(plain) is Literal else ()


def _struct_fields(kind: Any) -> tuple[FieldInfo, ...]:
    return fields(kind) if isinstance(kind, type) and issubclass(kind, Struct) else ()


def _split_annotation(kind: Any) -> tuple[Any, str]:
    """The type without its annotation, and its explanation. An optional value is declared `Annotated[…] | None`."""
    options = (kind, *get_args(kind)) if get_origin(kind) is not Literal else (kind,)
    for option in options:
        if get_origin(option) is Annotated:
            plain, meta, *_ = get_args(option)
            return plain, meta.description if isinstance(meta, Meta) and meta.description else ""
    return kind, ""
