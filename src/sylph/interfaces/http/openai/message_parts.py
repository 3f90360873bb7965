"""What clients put into a message: text, pictures and documents, in the words of both dialects."""

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sylph.core.errors import UserError
from sylph.core.tool import ImageData
from sylph.tools.files.read import images

PDF = "application/pdf"
LARGEST_PDF = 20_000_000
MAX_FILES = 20
DATA_URL = "give it as a data URL: data:image/png;base64,…"


class ImageUrl(Struct, frozen=True, kw_only=True):
    url: Annotated[str, Meta(description="A data URL. Other addresses are not fetched.")]
    detail: str = "auto"


class FileData(Struct, frozen=True, kw_only=True):
    file_data: Annotated[str, Meta(description="A data URL, or base64: a PDF, a picture, or text in UTF-8.")] = ""
    filename: Annotated[str, Meta(max_length=255)] = ""
    file_id: str = ""


class ChatTextPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class InputText(Struct, frozen=True, kw_only=True, tag_field="type", tag="input_text"):
    text: str


class OutputText(Struct, frozen=True, kw_only=True, tag_field="type", tag="output_text"):
    text: str


class ChatRefusalPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="refusal"):
    refusal: str


class ImagePart(Struct, frozen=True, kw_only=True, tag_field="type", tag="image_url"):
    image_url: ImageUrl


class InputImage(Struct, frozen=True, kw_only=True, tag_field="type", tag="input_image"):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = "auto"


class FilePart(Struct, frozen=True, kw_only=True, tag_field="type", tag="file"):
    file: FileData


class InputFile(Struct, frozen=True, kw_only=True, tag_field="type", tag="input_file"):
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


MessagePart = ChatTextPart | InputText | OutputText | ChatRefusalPart | ImagePart | InputImage | FilePart | InputFile
MessageContent = str | list[MessagePart] | None


class ConversationMessage(Struct, frozen=True, kw_only=True):
    """One message of the conversation as the client tells it. `text` is what a person would read of it."""

    role: str
    text: str
    files: tuple[ImageData, ...] = ()


def unsupported_error(message: str, param: str, next: str = "") -> UserError:
    """What a client asks for and cannot have; `param` tells which of its parameters that is."""
    advice = [next] if next else []
    return UserError(message, kind="unsupported_parameter", details={"param": param}, next=advice)


def parse_message(role: str, content: MessageContent, where: str) -> ConversationMessage:
    """A message with its files taken out of their wrappings. Raises UserError for what no model could look at."""
    if content is None or isinstance(content, str):
        return ConversationMessage(role=role, text=content or "")
    texts: list[str] = []
    files: list[ImageData] = []
    for part in content:
        match part:
            case ChatTextPart(text=text) | InputText(text=text) | OutputText(text=text) | ChatRefusalPart(refusal=text):
                texts.append(text)
            case ImagePart(image_url=ImageUrl(url=url)):
                files.append(_picture_from_url(url, "", where))
            case InputImage():
                files.append(_picture_from_url(part.image_url or "", "", where))
            case FilePart(file=file):
                _add_file(file.file_data, file.filename, where, texts, files)
            case InputFile():
                _add_file(part.file_data or "", part.filename or "", where, texts, files)
    if len(files) > MAX_FILES:
        raise unsupported_error(f"{len(files)} files go with one message; {MAX_FILES} may.", where, "attach fewer")
    return ConversationMessage(role=role, text="\n\n".join(texts), files=tuple(files))


def _add_file(data: str, name: str, where: str, texts: list[str], files: list[ImageData]) -> None:
    """A text goes where the model reads it; everything else is looked at."""
    raw = _decode_data(data, where)
    if not raw.startswith(b"%PDF-") and not images.media_of(raw[:16]):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise unsupported_error(
                f"{name or 'The file'} is no text, no picture and no PDF document.", where
            ) from error
        texts.append(f'<file name="{name}">\n{text}\n</file>')
    else:
        files.append(_check_picture(raw, name, where))


def _picture_from_url(url: str, name: str, where: str) -> ImageData:
    return _check_picture(_decode_data(url, where), name, where)


def _check_picture(data: bytes, name: str, where: str) -> ImageData:
    media = PDF if data.startswith(b"%PDF-") else images.media_of(data[:16])
    if not media:
        raise unsupported_error("That is neither a picture (PNG, JPEG, GIF, WebP) nor a PDF document.", where, DATA_URL)
    most = LARGEST_PDF if media == PDF else images.LARGEST
    if len(data) > most:
        raise unsupported_error(
            f"The file has {len(data):,} bytes; {most:,} may be attached.", where, "attach a smaller one"
        )
    if media != PDF and not images.is_complete(data, media):
        raise unsupported_error("The picture is cut off: its end is missing.", where, "send it anew")
    return ImageData(data=data, media=media, name=name)


def _decode_data(told: str, where: str) -> bytes:
    if not told or "://" in told[:20]:
        raise unsupported_error(
            "Files are taken as data only; no address and no file id is looked up.", where, DATA_URL
        )
    head, comma, rest = told.partition(",")
    if head.startswith("data:") and not head.endswith(";base64"):
        raise unsupported_error("The data URL is not in base64.", where, DATA_URL)
    try:
        return base64.b64decode(rest if comma else told, validate=True)
    except (binascii.Error, ValueError) as error:
        raise unsupported_error(f"The file is not in base64: {error}.", where, DATA_URL) from error


def canonical_bytes(messages: Iterable[ConversationMessage]) -> bytes:
    """The same bytes for the same conversation, however a client spells it."""
    told = [
        (each.role, " ".join(each.text.split()), [(file.media, file.data) for file in each.files]) for each in messages
    ]
    return msgspec.msgpack.encode(told)
