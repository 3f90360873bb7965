"""A text as the disk has it: its encoding, its mark and its line ends, told and kept."""

import codecs
from typing import Literal

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.tools.files import text_file

TextEncoding = Literal["utf-8", "utf-8-bom", "utf-16-le", "utf-16-be", "unknown"]
LineEnds = Literal["lf", "crlf", "mixed", "none"]
BYTE_ORDER_MARKS: tuple[tuple[bytes, TextEncoding], ...] = (
    (text_file.BOM, "utf-8-bom"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class DecodedText(Struct, frozen=True):
    """`unknown` is what is no text in an encoding that can be told; its odd bytes show as �."""

    content: str
    encoding: TextEncoding
    line_ends: LineEnds


def decode_text(data: bytes) -> DecodedText | None:
    """The text; None for what is none."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            try:
                content = data[len(mark) :].decode(_codec_name(encoding))
            except UnicodeDecodeError:
                break
            return DecodedText(content, encoding, _detect_line_ends(content))
    if text_file.is_binary(data):
        return None
    try:
        content, encoding = data.decode(), "utf-8"
    except UnicodeDecodeError:
        content, encoding = data.decode("utf-8", "replace"), "unknown"
    return DecodedText(content, encoding, _detect_line_ends(content))


def encode_like_original(content: str, was: bytes, name: str) -> bytes:
    """A new content in the encoding, with the mark and the line ends of the old one."""
    old = decode_text(was) if was else None
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
        return text_file.encode_like(content, was) if was else plain
    mark = next(mark for mark, encoding in BYTE_ORDER_MARKS if encoding == old.encoding)
    ended = text_file.to_crlf(content) if old.line_ends == "crlf" and "\r" not in content else content
    return mark + ended.encode(_codec_name(old.encoding))


def _codec_name(encoding: str) -> str:
    return encoding.removesuffix("-bom")


def _detect_line_ends(content: str) -> LineEnds:
    lines, dos = content.count("\n"), content.count("\r\n")
    if not lines:
        return "none"
    return "crlf" if dos == lines else "mixed" if dos else "lf"
