"""A conversation in the words of the Anthropic Messages dialect, with marks for its cache.

A mark is always the same bytes at the end of the last block of a message, so a body without its marks is the beginning
of the next one without its marks. Two stand among the messages: one at the end, and one where the question before this
one ended, so that what was written to the cache then is found again however much came in between.
"""

from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.core.provider import Request
from sylph.providers.chat_reply import is_json
from sylph.providers.grown import Grown, results_together
from sylph.providers.shown import Load, Seen, seen
from sylph.providers.told import Told, asked_by, told

MARK = b',"cache_control":{"type":"ephemeral"}'
END = b"}]}"
NOTHING = "(nothing)"


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


def call_of(item: bytes) -> str | None:
    block = BLOCK.decode(item)
    return block.id if block.type == "tool_use" else None


class Conversation:
    """The messages of a request as JSON; what the last request began with is not made again."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._grown = Grown(results_together)

    def encode(self, request: Request, *, sees: bool, marks: bool, native: bool) -> list[msgspec.Raw]:
        model = f"{self._service}/{request.model}" if native else ""
        talk = _Talk(request.messages, request.image, model, sees=sees)
        made = self._grown.encode(request.messages, (model, sees), talk.make)
        if marks:
            made = _marked(made)
        return [msgspec.Raw(each) for each in made]

    def thought(self, request: Request, *, native: bool) -> bool:
        """Whether calls that wait for their results began with thinking of this model: else it must not think now."""
        last = asked_by(request.messages, len(request.messages))
        if last is None or not last.calls:
            return True
        own = told(last, f"{self._service}/{request.model}", call_of) if native else None
        return own is not None and BLOCK.decode(own.items[0]).type.endswith("thinking")


class _Talk:
    def __init__(self, messages: Sequence[Message], load: Load, model: str, *, sees: bool) -> None:
        self._messages, self._load, self._model, self._sees = messages, load, model, sees

    def make(self, first: int, end: int) -> bytes:
        message = self._messages[first]
        if message.role == "tool":
            blocks = [msgspec.json.encode(block) for block in self._results(first, end)]
        elif message.role == "assistant":
            own = told(message, self._model, call_of)
            blocks = own.items if own else [msgspec.json.encode(block) for block in _answer(message)]
        else:
            blocks = [msgspec.json.encode(block) for block in self._said(message)]
        role = "assistant" if message.role == "assistant" else "user"
        return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))

    def _said(self, message: Message) -> Iterator[_Block]:
        yield from self._shown(message.images)
        if message.text.strip() or not message.images:
            yield _Block("text", _words(message.text))

    def _results(self, first: int, end: int) -> Iterator[_Block]:
        asked = asked_by(self._messages, first)
        own: Told | None = told(asked, self._model, call_of) if asked else None
        names = dict(zip((call.id for call in asked.calls), own.ids, strict=True)) if asked and own else {}
        for message in self._messages[first:end]:
            text = [_Block("text", message.text)] if message.text.strip() else []
            content = [*text, *self._shown(message.images)]
            id = names.get(message.call, message.call)
            yield _Block("tool_result", tool_use_id=id, content=content or None)

    def _shown(self, images: Sequence[Image]) -> Iterator[_Block]:
        return (_shown(seen(image, self._load, sees=self._sees)) for image in images)


def _shown(image: Seen) -> _Block:
    if image.words:
        return _Block("text", image.words)
    source = _Source("base64", image.media, image.data)
    return _Block("document", source=source, title=image.name) if image.document else _Block("image", source=source)


def _answer(message: Message) -> Iterator[_Block]:
    """An answer of another model, or one that held nothing but words and calls."""
    if message.text.strip() or not message.calls:
        yield _Block("text", _words(message.text))
    for call in message.calls:
        yield _Block("tool_use", id=call.id, name=call.name, input=sendable(call.arguments))


def sendable(arguments: str) -> msgspec.Raw:
    """Arguments as an object, which services insist on; what is not one would make them refuse the session for ever."""
    text = arguments.strip()
    if text.startswith("{") and is_json(text):
        return msgspec.Raw(text.encode())
    return msgspec.Raw(msgspec.json.encode({"not_json": arguments}))


def _words(text: str) -> str:
    """Text that is not blank: that is refused."""
    return text if text.strip() else NOTHING


def _marked(made: list[bytes]) -> list[bytes]:
    """Marks the end, and the end of the question before."""
    answers = [at for at, each in enumerate(made) if each.startswith(b'{"role":"assistant"')]
    ends = {len(made) - 1, *(at - 1 for at in answers[-1:])} - set(answers)
    return [each.removesuffix(END) + MARK + END if at in ends else each for at, each in enumerate(made)]


def unmarked(body: bytes) -> bytes:
    """A body without its marks. Inside of a text these bytes cannot stand: there the quotes are escaped."""
    return body.replace(MARK, b"")
