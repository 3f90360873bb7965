"""A conversation in the words of Google's Gemini dialect. Its cache finds what it has seen by itself: no marks."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.core.provider import Request
from sylph.providers.anthropic_messages import NOTHING, sendable
from sylph.providers.grown import Grown, results_together
from sylph.providers.shown import Load, seen
from sylph.providers.told import asked_by, told

# What the vendor wants to see on the first call of an answer that another model gave.
FOREIGN = "skip_thought_signature_validator"
NEWEST = (99, 0)
SIGNED = (3, 0)


class Call(msgspec.Struct, omit_defaults=True):
    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | None = None


class _Data(msgspec.Struct):
    mimeType: str
    data: str


class _Answer(msgspec.Struct):
    output: str


class _Response(msgspec.Struct, omit_defaults=True):
    name: str
    response: _Answer
    id: str | None = None
    parts: "list[Part] | None" = None


class Part(msgspec.Struct, omit_defaults=True):
    text: str | None = None
    thought: bool | None = None
    functionCall: Call | None = None
    thoughtSignature: str | None = None
    inlineData: _Data | None = None
    functionResponse: _Response | None = None


class _Called(msgspec.Struct):
    functionCall: Call | None = None


CALLED = msgspec.json.Decoder(_Called)


def version(model: str) -> tuple[int, int] | None:
    """`gemini-2.5-flash` is 2.5, `gemini-flash-latest` the newest; None for what is not Gemini."""
    name = model.lower().rpartition("/")[2]
    if not name.startswith("gemini"):
        return None
    found = re.match(r"gemini-(\d+)(?:\.(\d+))?", name)
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


def signs(model: str) -> bool:
    """Whether it is of those that insist on signed calls, and take images inside of results."""
    return (version(model) or (0, 0)) >= SIGNED


def call_of(item: bytes) -> str | None:
    call = CALLED.decode(item).functionCall
    return None if call is None else call.id or ""


class Conversation:
    """The contents of a request as JSON; what the last request began with is not made again."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._grown = Grown(results_together)

    def encode(self, request: Request, *, sees: bool, native: bool) -> list[msgspec.Raw]:
        talk = _Talk(request, f"{self._service}/{request.model}" if native else "", sees=sees)
        made = self._grown.encode(request.messages, (talk.model, request.model, sees), talk.make)
        return [msgspec.Raw(each) for each in made]


class _Talk:
    def __init__(self, request: Request, model: str, *, sees: bool) -> None:
        self.model = model
        self._messages: Sequence[Message] = request.messages
        self._load: Load = request.image
        self._signs = signs(request.model)
        self._sees = sees

    def make(self, first: int, end: int) -> bytes:
        message = self._messages[first]
        if message.role == "assistant":
            own = told(message, self.model, call_of)
            parts = own.items if own else [msgspec.json.encode(part) for part in self._answer(message)]
            return b'{"role":"model","parts":[%b]}' % b",".join(parts)
        made = self._results(first, end) if message.role == "tool" else self._said(message)
        return b'{"role":"user","parts":[%b]}' % b",".join(msgspec.json.encode(part) for part in made)

    def _said(self, message: Message) -> Iterator[Part]:
        yield from self._shown(message.images)
        if message.text or not message.images:
            yield Part(text=message.text or NOTHING)

    def _answer(self, message: Message) -> Iterator[Part]:
        """An answer of another model, or one that held nothing but words and calls."""
        if message.text or not message.calls:
            yield Part(text=message.text or NOTHING)
        for at, call in enumerate(message.calls):
            signature = FOREIGN if self._signs and not at else None
            yield Part(functionCall=Call(call.name, sendable(call.arguments)), thoughtSignature=signature)

    def _results(self, first: int, end: int) -> Iterator[Part]:
        """In the order of the calls: without ids they are told apart by it."""
        asked = asked_by(self._messages, first)
        calls = list(asked.calls) if asked else []
        own = told(asked, self.model, call_of) if asked else None
        ids = own.ids if own else [""] * len(calls)
        places = {call.id: (at, call.name, id) for at, (call, id) in enumerate(zip(calls, ids, strict=True))}
        results = sorted(self._messages[first:end], key=lambda each: places.get(each.call, (len(calls),))[0])
        beside: list[Part] = []
        for message in results:
            _, name, id = places.get(message.call, (0, "unknown", ""))
            shown = list(self._shown(message.images))
            nested = shown if self._signs and all(part.inlineData for part in shown) else []
            beside += [] if nested else shown
            response = _Response(name, _Answer(message.text), id or None, nested or None)
            yield Part(functionResponse=response)
        yield from beside

    def _shown(self, images: Sequence[Image]) -> Iterator[Part]:
        for image in images:
            one = seen(image, self._load, sees=self._sees)
            yield Part(text=one.words) if one.words else Part(inlineData=_Data(one.media, one.data))
