"""A conversation in the words of Bedrock's Converse dialect, with marks for its cache.

The two sides must take turns here, so all that stands between two answers is one message. A mark is a block of its own,
always the same bytes at the end of a message: without its marks, a body is the beginning of the next one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sylph.core.messages import Image, Message
from sylph.core.provider import ModelRequest
from sylph.providers.dialects.anthropic.messages import EMPTY_TEXT, ensure_json_object
from sylph.providers.dialects.attachments import ImageLoader, encode_attachment
from sylph.providers.dialects.native_reply import find_calling_message, read_native_reply
from sylph.providers.dialects.prefix_cache import PrefixCache, group_by_side

CACHE_POINT: dict[str, Any] = {"cachePoint": {"type": "default"}}
CACHE_MARK = b',{"cachePoint":{"type":"default"}}'
ASSISTANT_PREFIX = b'{"role":"assistant"'

ConverseBlock = dict[str, Any]


class _ToolUse(msgspec.Struct):
    toolUseId: str = ""


class _CallBlock(msgspec.Struct):
    toolUse: _ToolUse | None = None


CALL_BLOCK = msgspec.json.Decoder(_CallBlock)


def read_call_id(item: bytes) -> str | None:
    use = CALL_BLOCK.decode(item).toolUse
    return None if use is None else use.toolUseId


class BedrockConversation:
    """The messages of a request as JSON; what the last request began with is not made again."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._grown = PrefixCache(group_by_side)

    def encode_messages(self, request: ModelRequest, *, sees: bool, marks: bool, native: bool) -> list[msgspec.Raw]:
        model = f"{self._service}/{request.model}" if native else ""
        talk = _MessageEncoder(request.messages, request.image, model, sees=sees)
        made = self._grown.encode_spans(request.messages, (model, sees), talk.encode_span)
        answers = [at for at, each in enumerate(made) if each.startswith(ASSISTANT_PREFIX)]
        ends = {len(made) - 1, *(at - 1 for at in answers[-1:])} - set(answers) if marks else set[int]()
        return [msgspec.Raw(each[:-2] + CACHE_MARK + each[-2:] if at in ends else each) for at, each in enumerate(made)]

    def starts_with_thinking(self, request: ModelRequest, *, native: bool) -> bool:
        """Whether calls that wait for their results began with thinking of this model: else it must not think now."""
        last = find_calling_message(request.messages, len(request.messages))
        if last is None or not last.calls:
            return True
        own = read_native_reply(last, f"{self._service}/{request.model}", read_call_id) if native else None
        return own is not None and own.items[0].startswith(b'{"reasoningContent"')


class _MessageEncoder:
    def __init__(self, messages: Sequence[Message], load: ImageLoader, model: str, *, sees: bool) -> None:
        self._messages, self._load, self._model, self._sees = messages, load, model, sees

    def encode_span(self, first: int, end: int) -> bytes:
        blocks: list[bytes] = []
        for at in range(first, end):
            message = self._messages[at]
            own = read_native_reply(message, self._model, read_call_id) if message.role == "assistant" else None
            blocks += own.items if own else [msgspec.json.encode(block) for block in self._message_blocks(at)]
        role = b"assistant" if self._messages[first].role == "assistant" else b"user"
        return b'{"role":"%b","content":[%b]}' % (role, b",".join(blocks))

    def _message_blocks(self, at: int) -> Iterator[ConverseBlock]:
        message = self._messages[at]
        if message.role == "tool":
            yield self._result_block(at)
            return
        yield from self._image_blocks(message.images)
        # A document must not stand without words.
        if message.text.strip() or not message.calls:
            yield {"text": message.text if message.text.strip() else EMPTY_TEXT}
        for call in message.calls:
            yield {"toolUse": {"toolUseId": call.id, "name": call.name, "input": ensure_json_object(call.arguments)}}

    def _result_block(self, at: int) -> ConverseBlock:
        message, asked = self._messages[at], find_calling_message(self._messages, at)
        own = read_native_reply(asked, self._model, read_call_id) if asked else None
        names = dict(zip((call.id for call in asked.calls), own.call_ids, strict=True)) if asked and own else {}
        content = [{"text": message.text or EMPTY_TEXT}, *self._image_blocks(message.images)]
        return {"toolResult": {"toolUseId": names.get(message.call, message.call), "content": content}}

    def _image_blocks(self, images: Sequence[Image]) -> Iterator[ConverseBlock]:
        for image in images:
            one = encode_attachment(image, self._load, sees=self._sees)
            source = {"source": {"bytes": one.data}}
            if one.fallback_text:
                yield {"text": one.fallback_text}
            elif one.is_document:
                yield {"document": {"format": "pdf", "name": _document_name(image), **source}}
            else:
                yield {"image": {"format": one.media.rpartition("/")[2].replace("jpg", "jpeg"), **source}}


def _document_name(image: Image) -> str:
    """A name as the service takes it, and no other document's."""
    words = re.sub(r"[^A-Za-z0-9()\[\]-]+", " ", image.name or "document").strip()
    return f"{words[:100]} {image.digest[:12]}".strip()


def strip_cache_marks(body: bytes) -> bytes:
    return body.replace(CACHE_MARK, b"")
