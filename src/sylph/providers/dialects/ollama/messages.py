"""A conversation in the words of Ollama's own dialect, made once as far as it only grows."""

import base64
from collections.abc import Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.providers.dialects.openai_chat.messages import IMAGE_MISSING, NOT_SHOWN, ImageLoader
from sylph.providers.dialects.openai_chat.reply import is_json

IMAGE_PREFIX = "image/"


class _Function(msgspec.Struct):
    name: str
    arguments: msgspec.Raw


class _Call(msgspec.Struct):
    function: _Function


class OllamaWireMessage(msgspec.Struct, omit_defaults=True):
    role: str
    content: str
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[_Call] | None = None
    tool_name: str | None = None


class OllamaThinking(msgspec.Struct):
    """What goes back to the same model beside its words."""

    thinking: str = ""


THINKING = msgspec.json.Decoder(OllamaThinking)


class OllamaConversation:
    """The JSON of messages. A conversation grows at its end: what the last one began with is not made again."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._last: tuple[Message, ...] = ()
        self._made: list[msgspec.Raw] = []
        self._how: tuple[str, bool] = ("", True)
        self._names: dict[str, str] = {}

    def encode_messages(
        self, model: str, messages: tuple[Message, ...], load: ImageLoader, *, sees: bool
    ) -> list[msgspec.Raw]:
        how, same = (model, sees), 0
        for old, new in zip(self._last, messages if how == self._how else (), strict=False):
            if old is not new:
                break
            same += 1
        self._last, self._how = messages, how
        made = self._made[:same]
        for message in messages[same:]:
            said = self._wire_message(f"{self._provider}/{model}", message, load, sees=sees)
            made.append(msgspec.Raw(msgspec.json.encode(said)))
        self._made = made
        return made

    def _wire_message(self, model: str, message: Message, load: ImageLoader, *, sees: bool) -> OllamaWireMessage:
        text, images = _split_images(message.images, load, sees=sees)
        words = "\n".join(part for part in (message.text, *text) if part)
        if message.role == "tool":
            return OllamaWireMessage("tool", words, images=images or None, tool_name=self._names.get(message.call))
        if message.role == "user":
            return OllamaWireMessage("user", words, images=images or None)
        self._names.update({call.id: call.name for call in message.calls})
        calls = [_Call(_Function(call.name, _ensure_json_object(call.arguments))) for call in message.calls]
        return OllamaWireMessage(
            "assistant", words, thinking=_own_thinking(message, model) or None, tool_calls=calls or None
        )


def _split_images(images: Sequence[Image], load: ImageLoader, *, sees: bool) -> tuple[list[str], list[str]]:
    """What is said of pictures that cannot be shown, and those that can. It takes no other documents."""
    said, shown = list[str](), list[str]()
    for image in images:
        name = image.name or "image"
        if not sees or not image.media.startswith(IMAGE_PREFIX):
            said.append(NOT_SHOWN.format(name=name))
        elif (data := load(image.digest)) is None:
            said.append(IMAGE_MISSING.format(name=name))
        else:
            shown.append(base64.b64encode(data).decode())
    return said, shown


def _own_thinking(message: Message, model: str) -> str:
    """What this very model thought."""
    if message.native is None or message.native.model != model:
        return ""
    try:
        return THINKING.decode(message.native.items).thinking
    except msgspec.DecodeError:
        # The same service was spoken to in another dialect then.
        return ""


def _ensure_json_object(arguments: str) -> msgspec.Raw:
    """Arguments are an object here, not a text that holds one."""
    if arguments.lstrip().startswith("{") and is_json(arguments):
        return msgspec.Raw(arguments.encode())
    return msgspec.Raw(msgspec.json.encode({"not_json": arguments}))
