"""A conversation in the words of Bedrock's Converse dialect, with marks for its cache.

The two sides must take turns here, so all that stands between two answers is one message. A mark is a block of its own,
always the same bytes at the end of a message: without its marks, a body is the beginning of the next one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sylph.core.messages import Image, Message
from sylph.core.provider import Request
from sylph.providers.anthropic_messages import NOTHING, sendable
from sylph.providers.grown import Grown, roles_in_turn
from sylph.providers.shown import Load, seen
from sylph.providers.told import asked_by, told

POINT: dict[str, Any] = {"cachePoint": {"type": "default"}}
MARK = b',{"cachePoint":{"type":"default"}}'
ANSWERED = b'{"role":"assistant"'

Block = dict[str, Any]


class _Use(msgspec.Struct):
    toolUseId: str = ""


class _Called(msgspec.Struct):
    toolUse: _Use | None = None


CALLED = msgspec.json.Decoder(_Called)


def call_of(item: bytes) -> str | None:
    use = CALLED.decode(item).toolUse
    return None if use is None else use.toolUseId


class Conversation:
    """The messages of a request as JSON; what the last request began with is not made again."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._grown = Grown(roles_in_turn)

    def encode(self, request: Request, *, sees: bool, marks: bool, native: bool) -> list[msgspec.Raw]:
        model = f"{self._service}/{request.model}" if native else ""
        talk = _Talk(request.messages, request.image, model, sees=sees)
        made = self._grown.encode(request.messages, (model, sees), talk.make)
        answers = [at for at, each in enumerate(made) if each.startswith(ANSWERED)]
        ends = {len(made) - 1, *(at - 1 for at in answers[-1:])} - set(answers) if marks else set[int]()
        return [msgspec.Raw(each[:-2] + MARK + each[-2:] if at in ends else each) for at, each in enumerate(made)]

    def thought(self, request: Request, *, native: bool) -> bool:
        """Whether calls that wait for their results began with thinking of this model: else it must not think now."""
        last = asked_by(request.messages, len(request.messages))
        if last is None or not last.calls:
            return True
        own = told(last, f"{self._service}/{request.model}", call_of) if native else None
        return own is not None and own.items[0].startswith(b'{"reasoningContent"')


class _Talk:
    def __init__(self, messages: Sequence[Message], load: Load, model: str, *, sees: bool) -> None:
        self._messages, self._load, self._model, self._sees = messages, load, model, sees

    def make(self, first: int, end: int) -> bytes:
        blocks: list[bytes] = []
        for at in range(first, end):
            message = self._messages[at]
            own = told(message, self._model, call_of) if message.role == "assistant" else None
            blocks += own.items if own else [msgspec.json.encode(block) for block in self._blocks(at)]
        role = b"assistant" if self._messages[first].role == "assistant" else b"user"
        return b'{"role":"%b","content":[%b]}' % (role, b",".join(blocks))

    def _blocks(self, at: int) -> Iterator[Block]:
        message = self._messages[at]
        if message.role == "tool":
            yield self._result(at)
            return
        yield from self._shown(message.images)
        # A document must not stand without words.
        if message.text.strip() or not message.calls:
            yield {"text": message.text if message.text.strip() else NOTHING}
        for call in message.calls:
            yield {"toolUse": {"toolUseId": call.id, "name": call.name, "input": sendable(call.arguments)}}

    def _result(self, at: int) -> Block:
        message, asked = self._messages[at], asked_by(self._messages, at)
        own = told(asked, self._model, call_of) if asked else None
        names = dict(zip((call.id for call in asked.calls), own.ids, strict=True)) if asked and own else {}
        content = [{"text": message.text or NOTHING}, *self._shown(message.images)]
        return {"toolResult": {"toolUseId": names.get(message.call, message.call), "content": content}}

    def _shown(self, images: Sequence[Image]) -> Iterator[Block]:
        for image in images:
            one = seen(image, self._load, sees=self._sees)
            source = {"source": {"bytes": one.data}}
            if one.words:
                yield {"text": one.words}
            elif one.document:
                yield {"document": {"format": "pdf", "name": _title(image), **source}}
            else:
                yield {"image": {"format": one.media.rpartition("/")[2].replace("jpg", "jpeg"), **source}}


def _title(image: Image) -> str:
    """A name as the service takes it, and no other document's."""
    words = re.sub(r"[^A-Za-z0-9()\[\]-]+", " ", image.name or "document").strip()
    return f"{words[:100]} {image.digest[:12]}".strip()


def unmarked(body: bytes) -> bytes:
    return body.replace(MARK, b"")
