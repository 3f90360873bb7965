"""A conversation in the words of Ollama's own dialect, made once as far as it only grows."""

import base64
from collections.abc import Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.providers.chat_messages import GONE, UNSEEN, Load
from sylph.providers.chat_reply import is_json

PICTURES = "image/"


class _Function(msgspec.Struct):
    name: str
    arguments: msgspec.Raw


class _Call(msgspec.Struct):
    function: _Function


class Said(msgspec.Struct, omit_defaults=True):
    role: str
    content: str
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[_Call] | None = None
    tool_name: str | None = None


class Thought(msgspec.Struct):
    """What goes back to the same model beside its words."""

    thinking: str = ""


THOUGHT = msgspec.json.Decoder(Thought)


class OllamaMessages:
    """The JSON of messages. A conversation grows at its end: what the last one began with is not made again."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._last: tuple[Message, ...] = ()
        self._made: list[msgspec.Raw] = []
        self._how: tuple[str, bool] = ("", True)
        self._names: dict[str, str] = {}

    def encode(self, model: str, messages: tuple[Message, ...], load: Load, *, sees: bool) -> list[msgspec.Raw]:
        how, same = (model, sees), 0
        for old, new in zip(self._last, messages if how == self._how else (), strict=False):
            if old is not new:
                break
            same += 1
        self._last, self._how = messages, how
        made = self._made[:same]
        for message in messages[same:]:
            said = self._said(f"{self._provider}/{model}", message, load, sees=sees)
            made.append(msgspec.Raw(msgspec.json.encode(said)))
        self._made = made
        return made

    def _said(self, model: str, message: Message, load: Load, *, sees: bool) -> Said:
        text, images = _shown(message.images, load, sees=sees)
        words = "\n".join(part for part in (message.text, *text) if part)
        if message.role == "tool":
            return Said("tool", words, images=images or None, tool_name=self._names.get(message.call))
        if message.role == "user":
            return Said("user", words, images=images or None)
        self._names.update({call.id: call.name for call in message.calls})
        calls = [_Call(_Function(call.name, _object(call.arguments))) for call in message.calls]
        return Said("assistant", words, thinking=_thought(message, model) or None, tool_calls=calls or None)


def _shown(images: Sequence[Image], load: Load, *, sees: bool) -> tuple[list[str], list[str]]:
    """What is said of pictures that cannot be shown, and those that can. It takes no other documents."""
    said, shown = list[str](), list[str]()
    for image in images:
        name = image.name or "image"
        if not sees or not image.media.startswith(PICTURES):
            said.append(UNSEEN.format(name=name))
        elif (data := load(image.digest)) is None:
            said.append(GONE.format(name=name))
        else:
            shown.append(base64.b64encode(data).decode())
    return said, shown


def _thought(message: Message, model: str) -> str:
    """What this very model thought."""
    if message.native is None or message.native.model != model:
        return ""
    try:
        return THOUGHT.decode(message.native.items).thinking
    except msgspec.DecodeError:
        # The same service was spoken to in another dialect then.
        return ""


def _object(arguments: str) -> msgspec.Raw:
    """Arguments are an object here, not a text that holds one."""
    if arguments.lstrip().startswith("{") and is_json(arguments):
        return msgspec.Raw(arguments.encode())
    return msgspec.Raw(msgspec.json.encode({"not_json": arguments}))
