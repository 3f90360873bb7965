"""A conversation as the input items of the Responses dialect, made once as far as it only grows."""

import base64
from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.providers.dialects.openai_chat.messages import IMAGE_MISSING, NOT_SHOWN, PDF, ImageLoader, ensure_json_text


class _Part(msgspec.Struct, omit_defaults=True):
    type: str
    text: str | None = None
    image_url: str | None = None
    filename: str | None = None
    file_data: str | None = None


class _MessageItem(msgspec.Struct, tag="message"):
    role: str
    content: list[_Part]


class _CallItem(msgspec.Struct, tag="function_call"):
    call_id: str
    name: str
    arguments: str


class _ResultItem(msgspec.Struct, tag="function_call_output"):
    call_id: str
    output: str | list[_Part]


class _NativeItem(msgspec.Struct):
    """What of an item in a service's own words has to be known here."""

    type: str = ""
    call_id: str = ""


ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
NATIVE_ITEM = msgspec.json.Decoder(_NativeItem)


class ResponsesConversation:
    """The JSON of a conversation. It grows at its end: what the last one began with is not made again."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._last: tuple[Message, ...] = ()
        self._made: list[list[msgspec.Raw]] = []
        self._how: tuple[str, bool] = ("", True)
        self._ids: dict[str, str] = {}

    def encode_items(
        self, model: str, messages: tuple[Message, ...], load: ImageLoader, *, sees: bool
    ) -> list[list[msgspec.Raw]]:
        """The items of each message."""
        how, same = (model, sees), 0
        for old, new in zip(self._last, messages if how == self._how else (), strict=False):
            if old is not new:
                break
            same += 1
        self._last, self._how = messages, how
        made = self._made[:same]
        for message in messages[same:]:
            made.append(list(self._message_items(f"{self._provider}/{model}", message, load, sees=sees)))
        self._made = made
        return made

    def _message_items(self, model: str, message: Message, load: ImageLoader, *, sees: bool) -> Iterator[msgspec.Raw]:
        if message.role == "tool":
            parts = list(_image_parts(message.images, load, sees=sees))
            output = [_Part("input_text", message.text), *parts] if parts else message.text
            yield _encode_item(_ResultItem(self._ids.get(message.call, message.call), output))
        elif message.role == "user":
            text = [_Part("input_text", message.text)] if message.text or not message.images else []
            yield _encode_item(_MessageItem("user", [*text, *_image_parts(message.images, load, sees=sees)]))
        elif own := _own_items(message, model):
            yield from self._native_items(message, own)
        else:
            # What another model thought is not for this one; what it said and did is.
            if message.text or not message.calls:
                yield _encode_item(_MessageItem("assistant", [_Part("output_text", message.text)]))
            for call in message.calls:
                self._ids.pop(call.id, None)
                yield _encode_item(_CallItem(call.id, call.name, ensure_json_text(call.arguments)))

    def _native_items(self, message: Message, own: list[tuple[msgspec.Raw, "_NativeItem"]]) -> Iterator[msgspec.Raw]:
        """The answer byte for byte; the results of its calls are told by the service's own ids from here on."""
        theirs = [item.call_id for _, item in own if item.type == "function_call"]
        self._ids.update({call.id: id for call, id in zip(message.calls, theirs, strict=False)})
        yield from (raw for raw, _ in own)


def _own_items(message: Message, model: str) -> list[tuple[msgspec.Raw, _NativeItem]]:
    """The answer in the service's own words, if it is an answer of this very model, and in these words."""
    if message.native is None or message.native.model != model:
        return []
    try:
        return [(raw, NATIVE_ITEM.decode(raw)) for raw in ITEMS.decode(message.native.items)]
    except msgspec.DecodeError:
        # The same service was spoken to in another dialect then.
        return []


def _encode_item(item: msgspec.Struct) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(item))


def _image_parts(images: Sequence[Image], load: ImageLoader, *, sees: bool) -> Iterator[_Part]:
    for image in images:
        name = image.name or "image"
        if not sees:
            yield _Part("input_text", NOT_SHOWN.format(name=name))
        elif (data := load(image.digest)) is None:
            yield _Part("input_text", IMAGE_MISSING.format(name=name))
        else:
            url = f"data:{image.media};base64,{base64.b64encode(data).decode()}"
            if image.media == PDF:
                yield _Part("input_file", filename=image.name or "document.pdf", file_data=url)
            else:
                yield _Part("input_image", image_url=url)
