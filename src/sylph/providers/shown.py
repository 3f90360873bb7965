"""Images and documents of a message, as far as a service is shown them."""

import base64
from collections.abc import Callable
from typing import NamedTuple

from sylph.core.messages import Image, Message

Load = Callable[[str], bytes | None]
"""The bytes of an image by its digest."""
PDF = "application/pdf"
# How services complain of pictures and documents that they cannot take: some find no such model, some fail.
BLIND_STATUS = (400, 404, 415, 422, 500, 501)
BLIND = rb"(?i)image|document|pdf|inline.?data|modalit"
UNSEEN = "[{name}: not shown, this model takes no images]"
GONE = "[{name}: the image is gone]"


class Seen(NamedTuple):
    """A picture or document in base64; where it cannot be shown, `words` instead."""

    media: str
    data: str
    name: str
    words: str = ""

    @property
    def document(self) -> bool:
        return self.media == PDF


def seen(image: Image, load: Load, *, sees: bool) -> Seen:
    name = image.name or "image"
    if not sees:
        return Seen("", "", name, UNSEEN.format(name=name))
    if (data := load(image.digest)) is None:
        return Seen("", "", name, GONE.format(name=name))
    return Seen(image.media, base64.b64encode(data).decode(), name)


def shows(messages: tuple[Message, ...]) -> bool:
    return any(message.images for message in messages)
