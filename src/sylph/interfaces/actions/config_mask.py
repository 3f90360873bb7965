"""The text of the config file without its secrets, and back: an editor never gets to see them, and keeps them."""

import re
from collections.abc import Callable
from typing import Any, cast

import tomlkit

from sylph.config.setting_path import SECRET_SETTINGS, is_secret, join_path, mask_secret
from sylph.core.errors import UserError
from sylph.interfaces.actions.config_file import parse_toml

MASK_PREFIX = "(kept) "
SecretChange = Callable[[str, str], str]


def mask_secrets(text: str) -> str:
    """The text with each secret replaced by a sign that stands for it."""
    document = parse_toml(text)
    _change_secrets(document, lambda _, secret: MASK_PREFIX + mask_secret(secret) if secret else secret)
    return tomlkit.dumps(document)


def blank_secrets(text: str) -> str:
    """For a text that is no TOML: what stands after a name that holds secrets is not shown."""
    names = "|".join(sorted(SECRET_SETTINGS))
    return re.sub(rf"(?m)^(\s*(?:[\w.\"'-]*\.)?(?:{names}|headers)\b[^=\n]*=\s*).*$", rf'\1"{MASK_PREFIX}"', text)


def restore_secrets(text: str, before: str) -> str:
    """The text with the secrets that its signs stand for, out of the text before. Raises UserError for a lost one."""
    kept: dict[tuple[str, str], str] = {}

    def note(key: str, secret: str) -> str:
        kept.setdefault((key, MASK_PREFIX + mask_secret(secret)), secret)
        return secret

    def restore(key: str, shown: str) -> str:
        if not shown.startswith(MASK_PREFIX):
            return shown
        if (key, shown) not in kept:
            raise UserError(
                f"{key}: {shown!r} stands for no secret of the file.", kind="config", next=["write the secret itself"]
            )
        return kept[key, shown]

    _change_secrets(parse_toml(before), note)
    document = parse_toml(text)
    _change_secrets(document, restore)
    return tomlkit.dumps(document)


def _change_secrets(table: Any, change: SecretChange, *path: str) -> None:
    for name in list(table):
        value, key = table[name], join_path(*path, name)
        if isinstance(value, dict):
            _change_secrets(value, change, *path, name)
        elif is_secret(key) and isinstance(value, str):
            _set_changed(table, name, value, change(key, str(value)))
        elif is_secret(key) and isinstance(value, list):
            _change_secret_list(cast("list[object]", value), change, key)


def _change_secret_list(items: list[object], change: SecretChange, key: str) -> None:
    for number, item in enumerate(items):
        if isinstance(item, str):
            _set_changed(items, number, item, change(key, str(item)))


def _set_changed(holder: Any, name: object, before: str, after: str) -> None:
    if after != before:
        holder[name] = after


def find_setting_line(text: str, key: str) -> int:
    """The line that sets a key, as well as can be told without a parser; 0 where none does."""
    table, wanted = "", key
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            table = found[1].replace(" ", "")
            if table == wanted:
                return number
        elif found := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            name = ".".join(filter(None, (table, found[1].replace("'", '"'))))
            if name == wanted or wanted.startswith(f"{name}."):
                return number
    return 0
