"""A conversation in the words of the Chat Completions dialect, made once as far as it only grows."""

import base64
from collections.abc import Callable, Iterator, Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.providers.dialects.openai_chat.reply import is_json

ImageLoader = Callable[[str], bytes | None]
"""The bytes of an image by its digest."""
PDF = "application/pdf"
NOT_SHOWN = "[{name}: not shown, this model takes no images]"
IMAGE_MISSING = "[{name}: the image is gone]"


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    type: str
    function: _Function


class _Url(msgspec.Struct):
    url: str


class _File(msgspec.Struct):
    filename: str
    file_data: str


class _Part(msgspec.Struct, omit_defaults=True):
    type: str
    text: str | None = None
    image_url: _Url | None = None
    file: _File | None = None


class ChatReasoning(msgspec.Struct):
    """What goes back to the same model beside its words, where the service wants it."""

    reasoning_content: str = ""


class ChatWireMessage(msgspec.Struct, omit_defaults=True):
    role: str
    content: str | list[_Part] | None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class ChatConversation:
    """The JSON of messages. A conversation grows at its end: what the last one began with is not made again."""

    def __init__(self) -> None:
        self._last: tuple[Message, ...] = ()
        self._made: list[list[msgspec.Raw]] = []
        self._how: tuple[str, bool] = ("", True)

    def encode_messages(
        self, messages: tuple[Message, ...], load: ImageLoader, *, sees: bool, model: str = ""
    ) -> Iterator[msgspec.Raw]:
        """`model` is the one whose own thoughts go back to it, as `provider/model`; none for most services."""
        how, same = (model, sees), 0
        for old, new in zip(self._last, messages if how == self._how else (), strict=False):
            if old is not new:
                break
            same += 1
        fresh = [
            [msgspec.Raw(msgspec.json.encode(said)) for said in _wire_messages(messages, at, load, how)]
            for at in range(same, len(messages))
        ]
        self._last, self._how = messages, how
        self._made = [*self._made[:same], *fresh]
        return (raw for made in self._made for raw in made)


def has_images(messages: Sequence[Message]) -> bool:
    return any(message.images for message in messages)


def _wire_messages(
    messages: Sequence[Message], at: int, load: ImageLoader, how: tuple[str, bool]
) -> Iterator[ChatWireMessage]:
    message, (model, sees) = messages[at], how
    if message.role == "tool":
        yield ChatWireMessage("tool", message.text, tool_call_id=message.call)
        # Results cannot carry images here, and nothing may stand between them: so the images follow the last of them.
        if at + 1 == len(messages) or messages[at + 1].role != "tool":
            yield from _image_message(messages[: at + 1], load, sees=sees)
    elif message.calls:
        calls = [
            _Call(call.id, "function", _Function(call.name, ensure_json_text(call.arguments))) for call in message.calls
        ]
        yield ChatWireMessage("assistant", message.text or None, _own_reasoning(message, model), calls)
    elif message.images:
        text = [_Part("text", message.text)] if message.text else []
        yield ChatWireMessage(message.role, [*text, *_image_parts(message.images, load, sees=sees)])
    else:
        yield ChatWireMessage(message.role, message.text)


def _own_reasoning(message: Message, model: str) -> str | None:
    native = message.native
    if native is None or native.model != model:
        return None
    try:
        return msgspec.json.decode(native.items, type=ChatReasoning).reasoning_content or None
    except msgspec.DecodeError:
        # The same service was spoken to in another dialect then.
        return None


def _image_message(messages: Sequence[Message], load: ImageLoader, *, sees: bool) -> Iterator[ChatWireMessage]:
    """One message with all the images of the results that came together."""
    first = len(messages)
    while first and messages[first - 1].role == "tool":
        first -= 1
    parts: list[_Part] = []
    for message in messages[first:]:
        if message.images:
            parts += [_Part("text", f"[from the call {message.call}]"), *_image_parts(message.images, load, sees=sees)]
    if parts:
        yield ChatWireMessage("user", parts)


def _image_parts(images: Sequence[Image], load: ImageLoader, *, sees: bool) -> Iterator[_Part]:
    for image in images:
        name = image.name or "image"
        if not sees:
            yield _Part("text", NOT_SHOWN.format(name=name))
        elif (data := load(image.digest)) is None:
            yield _Part("text", IMAGE_MISSING.format(name=name))
        else:
            url = f"data:{image.media};base64,{base64.b64encode(data).decode()}"
            if image.media == PDF:
                yield _Part("file", file=_File(image.name or "document.pdf", url))
            else:
                yield _Part("image_url", image_url=_Url(url))


def ensure_json_text(arguments: str) -> str:
    """Arguments that many servers parse again; what is not JSON would make them refuse the session for ever."""
    return arguments if is_json(arguments) else msgspec.json.encode({"not_json": arguments}).decode()
