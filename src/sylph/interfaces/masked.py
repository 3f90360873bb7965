"""The text of the config file without its secrets, and back: an editor never gets to see them, and keeps them."""

import re
from collections.abc import Callable
from typing import Any, cast

import tomlkit

from sylph.config.keys import SECRETS, dotted, is_secret, mask
from sylph.core.errors import UserError
from sylph.interfaces.settings import parsed

SIGN = "(kept) "
Change = Callable[[str, str], str]


def masked(text: str) -> str:
    """The text with each secret replaced by a sign that stands for it."""
    document = parsed(text)
    _each(document, lambda _, secret: SIGN + mask(secret) if secret else secret)
    return tomlkit.dumps(document)


def blanked(text: str) -> str:
    """For a text that is no TOML: what stands after a name that holds secrets is not shown."""
    names = "|".join(sorted(SECRETS))
    return re.sub(rf"(?m)^(\s*(?:[\w.\"'-]*\.)?(?:{names}|headers)\b[^=\n]*=\s*).*$", rf'\1"{SIGN}"', text)


def unmasked(text: str, before: str) -> str:
    """The text with the secrets that its signs stand for, out of the text before. Raises UserError for a lost one."""
    kept: dict[tuple[str, str], str] = {}

    def note(key: str, secret: str) -> str:
        kept.setdefault((key, SIGN + mask(secret)), secret)
        return secret

    def restore(key: str, shown: str) -> str:
        if not shown.startswith(SIGN):
            return shown
        if (key, shown) not in kept:
            raise UserError(
                f"{key}: {shown!r} stands for no secret of the file.", kind="config", next=["write the secret itself"]
            )
        return kept[key, shown]

    _each(parsed(before), note)
    document = parsed(text)
    _each(document, restore)
    return tomlkit.dumps(document)


def _each(table: Any, change: Change, *path: str) -> None:
    for name in list(table):
        value, key = table[name], dotted(*path, name)
        if isinstance(value, dict):
            _each(value, change, *path, name)
        elif is_secret(key) and isinstance(value, str):
            _set(table, name, value, change(key, str(value)))
        elif is_secret(key) and isinstance(value, list):
            _each_of(cast("list[object]", value), change, key)


def _each_of(items: list[object], change: Change, key: str) -> None:
    for number, item in enumerate(items):
        if isinstance(item, str):
            _set(items, number, item, change(key, str(item)))


def _set(holder: Any, name: object, before: str, after: str) -> None:
    if after != before:
        holder[name] = after


def line_of(text: str, key: str) -> int:
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
