"""What kind of thing a server gave, and its text."""

import re
from typing import Literal

import msgspec

from sylph.core.errors import ToolError
from sylph.tools.web.charset import decode_body
from sylph.tools.web.readability.html_parser import word_set

Kind = Literal["html", "json", "text", "pdf", "image", "other"]

PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
WORDS = word_set(
    "application/xml application/javascript application/ecmascript application/x-javascript application/yaml "
    "application/x-yaml application/toml application/x-sh application/sql application/graphql "
    "application/x-ndjson application/jsonl application/x-httpd-php application/rtf image/svg+xml"
)
VAGUE = frozenset(("", "application/octet-stream", "binary/octet-stream", "application/x-download", "unknown/unknown"))
MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
PAGE = re.compile(rb"\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


def detect_media_type(header: str, body: bytes) -> str:
    """The type of a body: what the server says, unless it says nothing, or something that the bytes disprove."""
    told = header.partition(";")[0].strip().lower()
    if told not in VAGUE and not (told == "text/plain" and body.startswith(b"%PDF-")):
        return told
    for mark, name in MAGIC:
        if body.startswith(mark):
            return name
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    if PAGE.match(body[:4096]):
        return "text/html"
    return "text/plain" if _is_text(body[:65_536]) else told or "application/octet-stream"


def kind_of(media: str) -> Kind:
    if media in ("text/html", "application/xhtml+xml"):
        return "html"
    if media in ("application/json", "text/json") or media.endswith("+json"):
        return "json"
    if media == "application/pdf":
        return "pdf"
    if media in PICTURES:
        return "image"
    return "text" if media.startswith("text/") or media in WORDS or media.endswith("+xml") else "other"


def declared_charset(header: str) -> str:
    for part in header.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value
    return ""


def format_json(body: bytes, header: str, *, must: bool) -> str:
    """JSON with one value on a line. What is none is given as it is, unless it `must` be."""
    text = decode_body(body, declared_charset(header))
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        if not must:
            return text
        raise ToolError(
            f"That is not JSON: {error}.", kind="not_json", next=["Fetch it with format=auto to see what it is."]
        ) from None


def _is_text(body: bytes) -> bool:
    if b"\0" in body:
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True
