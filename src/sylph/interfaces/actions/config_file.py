"""Changing the config file: checked before it is written, comments kept, all or nothing."""

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError

from sylph.config.setting_path import (
    SettingFault,
    as_table,
    choices_of,
    find_faults,
    is_list,
    is_table,
    split_path,
    type_at,
)
from sylph.core.errors import UserError

NO_VALUE_WORDS = ("none", "null", "off", "")


def change_setting(text: str, key: str, value: str) -> str:
    """The file's text with another value at `key`. Raises UserError where the key or the value is wrong."""
    kind = type_at(key)
    if is_table(kind):
        raise UserError(f"{key!r} is a table: set one of its keys.", kind="config", next=["sylph config"])
    document = parse_toml(text)
    *parents, last = split_path(key)
    table: Any = document
    for name in parents:
        table = table.setdefault(name, tomlkit.table(is_super_table=False))
    table[last] = _convert_value(key, value, kind)
    return validate_config(tomlkit.dumps(document), text)


def assign_setting(text: str, key: str, value: object) -> str:
    """The same for a value that has its type already; whole tables too."""
    for fault in find_faults(value, type_at(key), *split_path(key)):
        raise UserError(f"{fault.key}: {fault.message}", kind="config", next=["the schema tells what it may be"])
    if value is None:
        raise _no_value_error(key, "null")
    document = parse_toml(text)
    *parents, last = split_path(key)
    table: Any = document
    for name in parents:
        table = table.setdefault(name, tomlkit.table(is_super_table=False))
    table[last] = value
    return validate_config(tomlkit.dumps(document), text)


def remove_setting(text: str, key: str) -> str:
    """The file's text without `key`. Raises UserError where it is not set."""
    document = parse_toml(text)
    *parents, last = split_path(key)
    table: Any = document
    for name in parents:
        table = as_table(table.get(name)) or {}
    if last not in table:
        raise UserError(f"{key!r} is not set in the file.", kind="config", next=["sylph config"])
    del table[last]
    return validate_config(tomlkit.dumps(document), text)


def validate_config(text: str, before: str = "") -> str:
    """The same text, if there is nothing wrong with it that was not wrong before: so a file is mended step by step."""
    known = set(list_config_faults(before))
    for fault in list_config_faults(text):
        if fault not in known:
            raise UserError(f"{fault.key}: {fault.message}", kind="config", next=["sylph config schema"])
    return text


def list_config_faults(text: str) -> list[SettingFault]:
    """All that is wrong with the text. Raises UserError where it is not even TOML."""
    return list(find_faults(parse_toml(text).unwrap()))


def write_config(file: Path, text: str) -> None:
    """The whole file or nothing of it; readable by its owner only, for it may hold keys."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, prefix=file.name, delete=False, encoding="utf-8"
        ) as fresh:
            fresh.write(text)
            fresh.flush()
            os.fsync(fresh.fileno())
        Path(fresh.name).replace(file)
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}.", kind="config") from error


def parse_toml(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        line = {"line": error.line} if isinstance(error, ParseError) else {}
        said = f"That is not valid TOML: {error}"
        raise UserError(said, kind="config", details=line, next=["sylph config edit"]) from error


def _parse_list(value: str) -> object:
    """A list: as TOML writes it, with commas, or as words the way a shell reads them."""
    try:
        if value.lstrip().startswith("["):
            return msgspec.toml.decode(f"v = {value}")["v"]
        parts = value.split(",") if "," in value else shlex.split(value)
        return [part.strip() for part in parts if part.strip()]
    except (msgspec.DecodeError, ValueError) as error:
        raise UserError(
            f"{value!r} is not a list: {error}.", kind="config", next=['give it as ["one", "two"]']
        ) from error


def _convert_value(key: str, value: str, kind: Any) -> object:
    """The value in the type that the key has, from the words of a command line."""
    try:
        if is_list(kind):
            return list(msgspec.convert(_parse_list(value), kind, strict=False))
        found = msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        if value.lower() in NO_VALUE_WORDS and not choices_of(kind):
            raise _no_value_error(key, value) from error
        said = f"must be one of {', '.join(choices)}" if (choices := choices_of(kind)) else str(error).replace("`", "")
        raise UserError(f"{key}: {said} (it is {value!r})", kind="config", next=["sylph config schema"]) from error
    if found is None:
        raise _no_value_error(key, value)
    return found


def _no_value_error(key: str, value: str) -> UserError:
    """TOML has no word for nothing: what is not set is left out."""
    return UserError(f"{key}: {value!r} is no value.", kind="config", next=[f"sylph config unset {key}"])
