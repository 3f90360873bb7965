"""The events of a response, folded into one reply."""

from typing import Any

import msgspec

from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import Arguments, Chunk, Finish, Reasoning, Reply, Text

# Several thoughts come in parts of their own.
PART = "\n\n"
# An answer that holds nothing else can be told again without its service's own words.
PLAIN = ("message",)


class Piece(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct, gc=False):
    """One thing in an answer: words, a thought, a call, something the service did by itself."""

    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    content: list[Piece] | None = None
    summary: list[Piece] | None = None


class InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class Tokens(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Why(msgspec.Struct, gc=False):
    reason: str | None = None


class Response(msgspec.Struct, gc=False):
    """The whole answer, as it stands at the beginning and at the end of a stream."""

    id: str | None = None
    object: str | None = None
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: Tokens | None = None
    incomplete_details: Why | None = None
    error: Any = None


class Event(msgspec.Struct, gc=False):
    """One event of a stream. Every field may be missing."""

    type: str = ""
    delta: Any = None
    output_index: int = 0
    summary_index: int | None = None
    item: msgspec.Raw = msgspec.Raw()
    response: Response | None = None


ITEM = msgspec.json.Decoder(Item, strict=False)
FINISH: dict[str | None, Finish] = {"max_output_tokens": "length", "content_filter": "filtered"}


class ResponsesReply:
    """Takes events as they come and gives what they add; `reply` is what it all came to."""

    def __init__(self) -> None:
        self.id = ""
        self.over = False
        self.begun = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thought: tuple[int, int] | None = None
        self._spoken: set[int] = set()
        self._calls: dict[int, tuple[int, str]] = {}
        self._items: dict[int, bytes] = {}
        self._finish: Finish | None = None
        self._usage = Usage()

    def take(self, event: Event) -> list[Chunk]:
        self.begun = True
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._say(event.output_index, event.delta, refused="refusal" in event.type)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._think(event.output_index, event.summary_index or 0, event.delta)
            case "response.function_call_arguments.delta":
                return self._argue(event.output_index, event.delta)
            case "response.output_item.added":
                return self._begin(event.output_index, bytes(event.item))
            case "response.output_item.done":
                return self._end(event.output_index, bytes(event.item))
            case _:
                return self._answer(event.type, event.response)

    def _answer(self, kind: str, response: Response | None) -> list[Chunk]:
        if response is None:
            return []
        self.id = response.id or self.id
        if kind not in ("response.completed", "response.incomplete", "response.done"):
            return []
        return self.whole(response)

    def whole(self, response: Response) -> list[Chunk]:
        """The end of a stream, or an answer that came as one document."""
        self.begun = self.over = True
        self.id = response.id or self.id
        if response.usage is not None:
            self._usage = _usage(response.usage)
        if response.status == "incomplete":
            reason = response.incomplete_details.reason if response.incomplete_details else None
            self._finish = FINISH.get(reason, "length")
        chunks: list[Chunk] = []
        for at, raw in enumerate(response.output or ()):
            if at not in self._items:
                chunks += self._end(at, bytes(raw))
        return chunks

    def reply(self) -> Reply:
        items = [(raw, ITEM.decode(raw)) for _, raw in sorted(self._items.items())]
        calls = [item for _, item in items if item.type == "function_call" and item.status != "incomplete"]
        # A thought without what followed from it cannot be sent back.
        told = not self._finish or self._finish != "length"
        native = told and any(item.type not in PLAIN for _, item in items)
        return Reply(
            text="".join(self._text),
            finish=self._finish or ("calls" if calls else "stop"),
            reasoning="".join(self._reasoning),
            calls=tuple(
                ToolCall(item.call_id or f"call_{at}", item.name or "", item.arguments or "{}")
                for at, item in enumerate(calls)
            ),
            usage=self._usage,
            native=f"[{b','.join(raw for raw, _ in items).decode()}]" if native else "",
        )

    def _say(self, at: int, text: Any, *, refused: bool = False) -> list[Chunk]:
        if refused:
            self._finish = "filtered"
        if not isinstance(text, str) or not text:
            return []
        self._spoken.add(at)
        self._text.append(text)
        return [Text(text)]

    def _think(self, at: int, part: int, text: Any) -> list[Chunk]:
        if not isinstance(text, str) or not text:
            return []
        if self._thought not in (None, (at, part)):
            text = PART + text
        self._thought = (at, part)
        self._spoken.add(at)
        self._reasoning.append(text)
        return [Reasoning(text)]

    def _argue(self, at: int, text: Any) -> list[Chunk]:
        if at not in self._calls or not isinstance(text, str) or not text:
            return []
        self._spoken.add(at)
        return [Arguments(*self._calls[at], text)]

    def _begin(self, at: int, raw: bytes) -> list[Chunk]:
        item = ITEM.decode(raw) if raw else Item()
        if item.type != "function_call" or at in self._calls:
            return []
        self._calls[at] = (len(self._calls), item.name or "")
        return [Arguments(*self._calls[at], "")]

    def _end(self, at: int, raw: bytes) -> list[Chunk]:
        """An item is whole. What of it was not told piece by piece is told now."""
        if not raw:
            return []
        item = ITEM.decode(raw)
        self._items[at] = raw
        chunks = self._begin(at, raw)
        if at in self._spoken:
            return chunks
        if item.type == "function_call":
            return chunks + self._argue(at, item.arguments)
        for piece in item.content or ():
            if item.type == "message":
                chunks += self._say(at, piece.text or piece.refusal, refused=piece.refusal is not None)
        for part, piece in enumerate(item.summary or ()):
            chunks += self._think(at, part, piece.text)
        return chunks


def _usage(tokens: Tokens) -> Usage:
    before, after = tokens.input_tokens_details, tokens.output_tokens_details
    return Usage(
        input=tokens.input_tokens or 0,
        output=tokens.output_tokens or 0,
        cached=(before.cached_tokens or 0) if before else 0,
        reasoning=(after.reasoning_tokens or 0) if after else 0,
    )
