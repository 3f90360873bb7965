"""What clients put into a message: text, pictures and documents, in the words of both dialects."""

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sylph.core.errors import UserError
from sylph.core.tool import Picture
from sylph.tools import images

PDF = "application/pdf"
LARGEST_PDF = 20_000_000
MOST = 20
DATA_URL = "give it as a data URL: data:image/png;base64,…"


class ImageUrl(Struct, frozen=True, kw_only=True):
    url: Annotated[str, Meta(description="A data URL. Other addresses are not fetched.")]
    detail: str = "auto"


class FileData(Struct, frozen=True, kw_only=True):
    file_data: Annotated[str, Meta(description="A data URL, or base64: a PDF, a picture, or text in UTF-8.")] = ""
    filename: Annotated[str, Meta(max_length=255)] = ""
    file_id: str = ""


class Text(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class InputText(Struct, frozen=True, kw_only=True, tag_field="type", tag="input_text"):
    text: str


class OutputText(Struct, frozen=True, kw_only=True, tag_field="type", tag="output_text"):
    text: str


class Refusal(Struct, frozen=True, kw_only=True, tag_field="type", tag="refusal"):
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


Part = Text | InputText | OutputText | Refusal | ImagePart | InputImage | FilePart | InputFile
Content = str | list[Part] | None


class Said(Struct, frozen=True, kw_only=True):
    """One message of the conversation as the client tells it. `text` is what a person would read of it."""

    role: str
    text: str
    files: tuple[Picture, ...] = ()


def refuse(message: str, param: str, next: str = "") -> UserError:
    """What a client asks for and cannot have; `param` tells which of its parameters that is."""
    advice = [next] if next else []
    return UserError(message, kind="unsupported_parameter", details={"param": param}, next=advice)


def said(role: str, content: Content, where: str) -> Said:
    """A message with its files taken out of their wrappings. Raises UserError for what no model could look at."""
    if content is None or isinstance(content, str):
        return Said(role=role, text=content or "")
    texts: list[str] = []
    files: list[Picture] = []
    for part in content:
        match part:
            case Text(text=text) | InputText(text=text) | OutputText(text=text) | Refusal(refusal=text):
                texts.append(text)
            case ImagePart(image_url=ImageUrl(url=url)):
                files.append(_file(url, "", where))
            case InputImage():
                files.append(_file(part.image_url or "", "", where))
            case FilePart(file=file):
                _add(file.file_data, file.filename, where, texts, files)
            case InputFile():
                _add(part.file_data or "", part.filename or "", where, texts, files)
    if len(files) > MOST:
        raise refuse(f"{len(files)} files go with one message; {MOST} may.", where, "attach fewer")
    return Said(role=role, text="\n\n".join(texts), files=tuple(files))


def _add(data: str, name: str, where: str, texts: list[str], files: list[Picture]) -> None:
    """A text goes where the model reads it; everything else is looked at."""
    raw = _bytes(data, where)
    if not raw.startswith(b"%PDF-") and not images.media_of(raw[:16]):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise refuse(f"{name or 'The file'} is no text, no picture and no PDF document.", where) from error
        texts.append(f'<file name="{name}">\n{text}\n</file>')
    else:
        files.append(_picture(raw, name, where))


def _file(url: str, name: str, where: str) -> Picture:
    return _picture(_bytes(url, where), name, where)


def _picture(data: bytes, name: str, where: str) -> Picture:
    media = PDF if data.startswith(b"%PDF-") else images.media_of(data[:16])
    if not media:
        raise refuse("That is neither a picture (PNG, JPEG, GIF, WebP) nor a PDF document.", where, DATA_URL)
    most = LARGEST_PDF if media == PDF else images.LARGEST
    if len(data) > most:
        raise refuse(f"The file has {len(data):,} bytes; {most:,} may be attached.", where, "attach a smaller one")
    if media != PDF and not images.is_whole(data, media):
        raise refuse("The picture is cut off: its end is missing.", where, "send it anew")
    return Picture(data=data, media=media, name=name)


def _bytes(told: str, where: str) -> bytes:
    if not told or "://" in told[:20]:
        raise refuse("Files are taken as data only; no address and no file id is looked up.", where, DATA_URL)
    head, comma, rest = told.partition(",")
    if head.startswith("data:") and not head.endswith(";base64"):
        raise refuse("The data URL is not in base64.", where, DATA_URL)
    try:
        return base64.b64decode(rest if comma else told, validate=True)
    except (binascii.Error, ValueError) as error:
        raise refuse(f"The file is not in base64: {error}.", where, DATA_URL) from error


def canonical(messages: Iterable[Said]) -> bytes:
    """The same bytes for the same conversation, however a client spells it."""
    told = [
        (each.role, " ".join(each.text.split()), [(file.media, file.data) for file in each.files]) for each in messages
    ]
    return msgspec.msgpack.encode(told)
