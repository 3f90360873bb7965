"""A text as the disk has it: its encoding, its mark and its line ends, told and kept."""

import codecs
from typing import Literal

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.tools import document

Encoding = Literal["utf-8", "utf-8-bom", "utf-16-le", "utf-16-be", "unknown"]
Ends = Literal["lf", "crlf", "mixed", "none"]
MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (document.BOM, "utf-8-bom"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Text(Struct, frozen=True):
    """`unknown` is what is no text in an encoding that can be told; its odd bytes show as �."""

    content: str
    encoding: Encoding
    ends: Ends


def read(data: bytes) -> Text | None:
    """The text; None for what is none."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            try:
                content = data[len(mark) :].decode(_codec(encoding))
            except UnicodeDecodeError:
                break
            return Text(content, encoding, _ends(content))
    if document.is_binary(data):
        return None
    try:
        content, encoding = data.decode(), "utf-8"
    except UnicodeDecodeError:
        content, encoding = data.decode("utf-8", "replace"), "unknown"
    return Text(content, encoding, _ends(content))


def dress(content: str, was: bytes, name: str) -> bytes:
    """A new content in the encoding, with the mark and the line ends of the old one."""
    old = read(was) if was else None
    if was and (old is None or old.encoding == "unknown"):
        raise UserError(
            f"{name} is no text whose encoding is known: writing it as text would lose some of it.",
            kind="not_text",
            next=["upload the whole content instead: PUT …/files/content"],
        )
    try:
        plain = content.encode()
    except UnicodeEncodeError as error:
        raise UserError("The text holds half of a character.", kind="bad_body", next=["send valid text"]) from error
    if old is None or old.encoding in ("utf-8", "utf-8-bom"):
        return document.dress(content, was) if was else plain
    mark = next(mark for mark, encoding in MARKS if encoding == old.encoding)
    ended = document.dos(content) if old.ends == "crlf" and "\r" not in content else content
    return mark + ended.encode(_codec(old.encoding))


def _codec(encoding: str) -> str:
    return encoding.removesuffix("-bom")


def _ends(content: str) -> Ends:
    lines, dos = content.count("\n"), content.count("\r\n")
    if not lines:
        return "none"
    return "crlf" if dos == lines else "mixed" if dos else "lf"
