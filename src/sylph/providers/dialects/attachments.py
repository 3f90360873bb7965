"""Images and documents of a message, as far as a service is shown them."""

import base64
from collections.abc import Callable
from typing import NamedTuple

from sylph.core.messages import Image, Message

ImageLoader = Callable[[str], bytes | None]
"""The bytes of an image by its digest."""
PDF = "application/pdf"
# How services complain of pictures and documents that they cannot take: some find no such model, some fail.
IMAGE_REFUSAL_STATUS = (400, 404, 415, 422, 500, 501)
IMAGE_REFUSAL = rb"(?i)image|document|pdf|inline.?data|modalit"
NOT_SHOWN = "[{name}: not shown, this model takes no images]"
IMAGE_MISSING = "[{name}: the image is gone]"


class EncodedAttachment(NamedTuple):
    """A picture or document in base64; where it cannot be shown, `words` instead."""

    media: str
    data: str
    name: str
    fallback_text: str = ""

    @property
    def is_document(self) -> bool:
        return self.media == PDF


def encode_attachment(image: Image, load: ImageLoader, *, sees: bool) -> EncodedAttachment:
    name = image.name or "image"
    if not sees:
        return EncodedAttachment("", "", name, NOT_SHOWN.format(name=name))
    if (data := load(image.digest)) is None:
        return EncodedAttachment("", "", name, IMAGE_MISSING.format(name=name))
    return EncodedAttachment(image.media, base64.b64encode(data).decode(), name)


def has_images(messages: tuple[Message, ...]) -> bool:
    return any(message.images for message in messages)
