"""Names of files as JSON and addresses can carry them. What is no UTF-8 goes as `base64:…`."""

import base64
import binascii
import os
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import quote

from fastapi import Query
from msgspec import Meta

from sylph.core.errors import UserError

BASE64_PREFIX = "base64:"
MAX_LENGTH = 8192
MAX_DEPTH = 200
STAY_INSIDE_HINT = "give a path inside the workspace, relative to it"
FolderPath = Annotated[
    str, Query(max_length=MAX_LENGTH, description="A path relative to the workspace; empty for itself.")
]
FilePath = Annotated[str, Query(min_length=1, max_length=MAX_LENGTH, description="A path relative to the workspace.")]
BodyPath = Annotated[str, Meta(min_length=1, max_length=MAX_LENGTH, description="A path relative to the workspace.")]


def split_path(given: str) -> tuple[str, ...]:
    """The names on the way to what is given, as the system takes them. Raises UserError for what leads elsewhere."""
    path = _decode_path(given) if given.startswith(BASE64_PREFIX) else given
    if "\0" in path:
        raise UserError("A path cannot hold a NUL byte.", kind="bad_path", next=[STAY_INSIDE_HINT])
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise UserError("The path is not valid text.", kind="bad_path", next=[STAY_INSIDE_HINT]) from error
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if path.startswith("/") or ".." in names:
        raise UserError(
            f"{display_name(path)} is outside the workspace.", kind="outside_workspace", next=[STAY_INSIDE_HINT]
        )
    if len(names) > MAX_DEPTH:
        raise UserError(f"A path may have {MAX_DEPTH} parts.", kind="name_too_long", next=["use fewer folders"])
    return names


def _decode_path(given: str) -> str:
    try:
        return os.fsdecode(base64.b64decode(given.removeprefix(BASE64_PREFIX), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise UserError(
            "The path is not valid base64.", kind="bad_path", next=["give it as the list told it"]
        ) from error


def encode_path(path: str) -> str:
    """A path to be given back as it is."""
    if _is_text(path):
        return f"./{path}" if path.startswith(BASE64_PREFIX) else path
    return BASE64_PREFIX + base64.urlsafe_b64encode(os.fsencode(path)).decode()


def display_name(name: str) -> str:
    """A name for people: text, whatever it is made of."""
    return os.fsencode(name).decode("utf-8", "replace") if not _is_text(name) else name


def content_disposition(name: str, *, inline: bool = False) -> str:
    """What a browser saves a file as. Nothing in a name gets out of its quotes, or into another header."""
    text = display_name(name)
    plain = "".join(_ascii_chars(text)).strip() or "file"
    return f"{'inline' if inline else 'attachment'}; filename=\"{plain}\"; filename*=UTF-8''{quote(text, safe='')}"


def _ascii_chars(text: str) -> Iterator[str]:
    for char in text:
        yield char if char.isascii() and char.isprintable() and char not in '"\\%;' else "_"


def _is_text(name: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in name)
