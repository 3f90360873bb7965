"""A conversation in the words of the Anthropic Messages dialect, with marks for its cache.

A mark is always the same bytes at the end of the last block of a message, so a body without its marks is the beginning
of the next one without its marks. Two stand among the messages: one at the end, and one where the question before this
one ended, so that what was written to the cache then is found again however much came in between.
"""

from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.core.provider import ModelRequest
from sylph.providers.dialects.attachments import EncodedAttachment, ImageLoader, encode_attachment
from sylph.providers.dialects.native_reply import NativeReply, find_calling_message, read_native_reply
from sylph.providers.dialects.openai_chat.reply import is_json
from sylph.providers.dialects.prefix_cache import PrefixCache, group_tool_results

CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
END = b"}]}"
EMPTY_TEXT = "(nothing)"


class _Source(msgspec.Struct):
    type: str
    media_type: str
    data: str


class _Block(msgspec.Struct, omit_defaults=True):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tool_use_id: str | None = None
    source: _Source | None = None
    title: str | None = None
    content: "list[_Block] | None" = None


BLOCK = msgspec.json.Decoder(_Block)


def read_call_id(item: bytes) -> str | None:
    block = BLOCK.decode(item)
    return block.id if block.type == "tool_use" else None


class AnthropicConversation:
    """The messages of a request as JSON; what the last request began with is not made again."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._grown = PrefixCache(group_tool_results)

    def encode_messages(self, request: ModelRequest, *, sees: bool, marks: bool, native: bool) -> list[msgspec.Raw]:
        model = f"{self._service}/{request.model}" if native else ""
        talk = _MessageEncoder(request.messages, request.image, model, sees=sees)
        made = self._grown.encode_spans(request.messages, (model, sees), talk.encode_span)
        if marks:
            made = _mark_cache_points(made)
        return [msgspec.Raw(each) for each in made]

    def starts_with_thinking(self, request: ModelRequest, *, native: bool) -> bool:
        """Whether calls that wait for their results began with thinking of this model: else it must not think now."""
        last = find_calling_message(request.messages, len(request.messages))
        if last is None or not last.calls:
            return True
        own = read_native_reply(last, f"{self._service}/{request.model}", read_call_id) if native else None
        return own is not None and BLOCK.decode(own.items[0]).type.endswith("thinking")


class _MessageEncoder:
    def __init__(self, messages: Sequence[Message], load: ImageLoader, model: str, *, sees: bool) -> None:
        self._messages, self._load, self._model, self._sees = messages, load, model, sees

    def encode_span(self, first: int, end: int) -> bytes:
        message = self._messages[first]
        if message.role == "tool":
            blocks = [msgspec.json.encode(block) for block in self._result_blocks(first, end)]
        elif message.role == "assistant":
            own = read_native_reply(message, self._model, read_call_id)
            blocks = own.items if own else [msgspec.json.encode(block) for block in _answer_blocks(message)]
        else:
            blocks = [msgspec.json.encode(block) for block in self._user_blocks(message)]
        role = "assistant" if message.role == "assistant" else "user"
        return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))

    def _user_blocks(self, message: Message) -> Iterator[_Block]:
        yield from self._image_blocks(message.images)
        if message.text.strip() or not message.images:
            yield _Block("text", _nonblank_text(message.text))

    def _result_blocks(self, first: int, end: int) -> Iterator[_Block]:
        asked = find_calling_message(self._messages, first)
        own: NativeReply | None = read_native_reply(asked, self._model, read_call_id) if asked else None
        names = dict(zip((call.id for call in asked.calls), own.call_ids, strict=True)) if asked and own else {}
        for message in self._messages[first:end]:
            text = [_Block("text", message.text)] if message.text.strip() else []
            content = [*text, *self._image_blocks(message.images)]
            id = names.get(message.call, message.call)
            yield _Block("tool_result", tool_use_id=id, content=content or None)

    def _image_blocks(self, images: Sequence[Image]) -> Iterator[_Block]:
        return (_image_block(encode_attachment(image, self._load, sees=self._sees)) for image in images)


def _image_block(image: EncodedAttachment) -> _Block:
    if image.fallback_text:
        return _Block("text", image.fallback_text)
    source = _Source("base64", image.media, image.data)
    return _Block("document", source=source, title=image.name) if image.is_document else _Block("image", source=source)


def _answer_blocks(message: Message) -> Iterator[_Block]:
    """An answer of another model, or one that held nothing but words and calls."""
    if message.text.strip() or not message.calls:
        yield _Block("text", _nonblank_text(message.text))
    for call in message.calls:
        yield _Block("tool_use", id=call.id, name=call.name, input=ensure_json_object(call.arguments))


def ensure_json_object(arguments: str) -> msgspec.Raw:
    """Arguments as an object, which services insist on; what is not one would make them refuse the session for ever."""
    text = arguments.strip()
    if text.startswith("{") and is_json(text):
        return msgspec.Raw(text.encode())
    return msgspec.Raw(msgspec.json.encode({"not_json": arguments}))


def _nonblank_text(text: str) -> str:
    """Text that is not blank: that is refused."""
    return text if text.strip() else EMPTY_TEXT


def _mark_cache_points(made: list[bytes]) -> list[bytes]:
    """Marks the end, and the end of the question before."""
    answers = [at for at, each in enumerate(made) if each.startswith(b'{"role":"assistant"')]
    ends = {len(made) - 1, *(at - 1 for at in answers[-1:])} - set(answers)
    return [each.removesuffix(END) + CACHE_MARK + END if at in ends else each for at, each in enumerate(made)]


def strip_cache_marks(body: bytes) -> bytes:
    """A body without its marks. Inside of a text these bytes cannot stand: there the quotes are escaped."""
    return body.replace(CACHE_MARK, b"")
