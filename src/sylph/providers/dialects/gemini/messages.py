"""A conversation in the words of Google's Gemini dialect. Its cache finds what it has seen by itself: no marks."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from sylph.core.messages import Image, Message
from sylph.core.provider import ModelRequest
from sylph.providers.dialects.anthropic.messages import EMPTY_TEXT, ensure_json_object
from sylph.providers.dialects.attachments import ImageLoader, encode_attachment
from sylph.providers.dialects.native_reply import find_calling_message, read_native_reply
from sylph.providers.dialects.prefix_cache import PrefixCache, group_tool_results

# What the vendor wants to see on the first call of an answer that another model gave.
FOREIGN_SIGNATURE = "skip_thought_signature_validator"
NEWEST = (99, 0)
SIGNED = (3, 0)


class GeminiCall(msgspec.Struct, omit_defaults=True):
    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | None = None


class _InlineData(msgspec.Struct):
    mimeType: str
    data: str


class _Answer(msgspec.Struct):
    output: str


class _FunctionResponse(msgspec.Struct, omit_defaults=True):
    name: str
    response: _Answer
    id: str | None = None
    parts: "list[GeminiPart] | None" = None


class GeminiPart(msgspec.Struct, omit_defaults=True):
    text: str | None = None
    thought: bool | None = None
    functionCall: GeminiCall | None = None
    thoughtSignature: str | None = None
    inlineData: _InlineData | None = None
    functionResponse: _FunctionResponse | None = None


class _CallPart(msgspec.Struct):
    functionCall: GeminiCall | None = None


CALL_PART = msgspec.json.Decoder(_CallPart)


def gemini_version(model: str) -> tuple[int, int] | None:
    """`gemini-2.5-flash` is 2.5, `gemini-flash-latest` the newest; None for what is not Gemini."""
    name = model.lower().rpartition("/")[2]
    if not name.startswith("gemini"):
        return None
    found = re.match(r"gemini-(\d+)(?:\.(\d+))?", name)
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


def requires_signatures(model: str) -> bool:
    """Whether it is of those that insist on signed calls, and take images inside of results."""
    return (gemini_version(model) or (0, 0)) >= SIGNED


def read_call_id(item: bytes) -> str | None:
    call = CALL_PART.decode(item).functionCall
    return None if call is None else call.id or ""


class GeminiConversation:
    """The contents of a request as JSON; what the last request began with is not made again."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._grown = PrefixCache(group_tool_results)

    def encode_messages(self, request: ModelRequest, *, sees: bool, native: bool) -> list[msgspec.Raw]:
        talk = _MessageEncoder(request, f"{self._service}/{request.model}" if native else "", sees=sees)
        made = self._grown.encode_spans(request.messages, (talk.model, request.model, sees), talk.encode_span)
        return [msgspec.Raw(each) for each in made]


class _MessageEncoder:
    def __init__(self, request: ModelRequest, model: str, *, sees: bool) -> None:
        self.model = model
        self._messages: Sequence[Message] = request.messages
        self._load: ImageLoader = request.image
        self._signs = requires_signatures(request.model)
        self._sees = sees

    def encode_span(self, first: int, end: int) -> bytes:
        message = self._messages[first]
        if message.role == "assistant":
            own = read_native_reply(message, self.model, read_call_id)
            parts = own.items if own else [msgspec.json.encode(part) for part in self._answer_parts(message)]
            return b'{"role":"model","parts":[%b]}' % b",".join(parts)
        made = self._result_parts(first, end) if message.role == "tool" else self._user_parts(message)
        return b'{"role":"user","parts":[%b]}' % b",".join(msgspec.json.encode(part) for part in made)

    def _user_parts(self, message: Message) -> Iterator[GeminiPart]:
        yield from self._image_parts(message.images)
        if message.text or not message.images:
            yield GeminiPart(text=message.text or EMPTY_TEXT)

    def _answer_parts(self, message: Message) -> Iterator[GeminiPart]:
        """An answer of another model, or one that held nothing but words and calls."""
        if message.text or not message.calls:
            yield GeminiPart(text=message.text or EMPTY_TEXT)
        for at, call in enumerate(message.calls):
            signature = FOREIGN_SIGNATURE if self._signs and not at else None
            yield GeminiPart(
                functionCall=GeminiCall(call.name, ensure_json_object(call.arguments)), thoughtSignature=signature
            )

    def _result_parts(self, first: int, end: int) -> Iterator[GeminiPart]:
        """In the order of the calls: without ids they are told apart by it."""
        asked = find_calling_message(self._messages, first)
        calls = list(asked.calls) if asked else []
        own = read_native_reply(asked, self.model, read_call_id) if asked else None
        ids = own.call_ids if own else [""] * len(calls)
        places = {call.id: (at, call.name, id) for at, (call, id) in enumerate(zip(calls, ids, strict=True))}
        results = sorted(self._messages[first:end], key=lambda each: places.get(each.call, (len(calls),))[0])
        beside: list[GeminiPart] = []
        for message in results:
            _, name, id = places.get(message.call, (0, "unknown", ""))
            shown = list(self._image_parts(message.images))
            nested = shown if self._signs and all(part.inlineData for part in shown) else []
            beside += [] if nested else shown
            response = _FunctionResponse(name, _Answer(message.text), id or None, nested or None)
            yield GeminiPart(functionResponse=response)
        yield from beside

    def _image_parts(self, images: Sequence[Image]) -> Iterator[GeminiPart]:
        for image in images:
            one = encode_attachment(image, self._load, sees=self._sees)
            yield (
                GeminiPart(text=one.fallback_text)
                if one.fallback_text
                else GeminiPart(inlineData=_InlineData(one.media, one.data))
            )
