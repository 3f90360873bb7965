"""The events of a response, folded into one reply."""

from typing import Any

import msgspec

from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, FinishReason, ModelReply, ReasoningChunk, TextChunk

# Several thoughts come in parts of their own.
PART_SEPARATOR = "\n\n"
# An answer that holds nothing else can be told again without its service's own words.
PLAIN_ITEM_TYPES = ("message",)


class ResponsesContentPart(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class ResponsesOutputItem(msgspec.Struct, gc=False):
    """One thing in an answer: words, a thought, a call, something the service did by itself."""

    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    content: list[ResponsesContentPart] | None = None
    summary: list[ResponsesContentPart] | None = None


class ResponsesInputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class ResponsesOutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class ResponsesTokenCounts(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: ResponsesInputDetails | None = None
    output_tokens_details: ResponsesOutputDetails | None = None


class ResponsesIncompleteReason(msgspec.Struct, gc=False):
    reason: str | None = None


class ResponsesObject(msgspec.Struct, gc=False):
    """The whole answer, as it stands at the beginning and at the end of a stream."""

    id: str | None = None
    object: str | None = None
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: ResponsesTokenCounts | None = None
    incomplete_details: ResponsesIncompleteReason | None = None
    error: Any = None


class ResponsesStreamEvent(msgspec.Struct, gc=False):
    """One event of a stream. Every field may be missing."""

    type: str = ""
    delta: Any = None
    output_index: int = 0
    summary_index: int | None = None
    item: msgspec.Raw = msgspec.Raw()
    response: ResponsesObject | None = None


ITEM = msgspec.json.Decoder(ResponsesOutputItem, strict=False)
FINISH: dict[str | None, FinishReason] = {"max_output_tokens": "length", "content_filter": "filtered"}


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
        self._finish: FinishReason | None = None
        self._usage = Usage()

    def take_event(self, event: ResponsesStreamEvent) -> list[Chunk]:
        self.begun = True
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._add_text(event.output_index, event.delta, refused="refusal" in event.type)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._add_reasoning(event.output_index, event.summary_index or 0, event.delta)
            case "response.function_call_arguments.delta":
                return self._add_arguments(event.output_index, event.delta)
            case "response.output_item.added":
                return self._start_item(event.output_index, bytes(event.item))
            case "response.output_item.done":
                return self._finish_item(event.output_index, bytes(event.item))
            case _:
                return self._take_response_event(event.type, event.response)

    def _take_response_event(self, kind: str, response: ResponsesObject | None) -> list[Chunk]:
        if response is None:
            return []
        self.id = response.id or self.id
        if kind not in ("response.completed", "response.incomplete", "response.done"):
            return []
        return self.take_whole_response(response)

    def take_whole_response(self, response: ResponsesObject) -> list[Chunk]:
        """The end of a stream, or an answer that came as one document."""
        self.begun = self.over = True
        self.id = response.id or self.id
        if response.usage is not None:
            self._usage = _convert_usage(response.usage)
        if response.status == "incomplete":
            reason = response.incomplete_details.reason if response.incomplete_details else None
            self._finish = FINISH.get(reason, "length")
        chunks: list[Chunk] = []
        for at, raw in enumerate(response.output or ()):
            if at not in self._items:
                chunks += self._finish_item(at, bytes(raw))
        return chunks

    def build_reply(self) -> ModelReply:
        items = [(raw, ITEM.decode(raw)) for _, raw in sorted(self._items.items())]
        calls = [item for _, item in items if item.type == "function_call" and item.status != "incomplete"]
        # A thought without what followed from it cannot be sent back.
        told = not self._finish or self._finish != "length"
        native = told and any(item.type not in PLAIN_ITEM_TYPES for _, item in items)
        return ModelReply(
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

    def _add_text(self, at: int, text: Any, *, refused: bool = False) -> list[Chunk]:
        if refused:
            self._finish = "filtered"
        if not isinstance(text, str) or not text:
            return []
        self._spoken.add(at)
        self._text.append(text)
        return [TextChunk(text)]

    def _add_reasoning(self, at: int, part: int, text: Any) -> list[Chunk]:
        if not isinstance(text, str) or not text:
            return []
        if self._thought not in (None, (at, part)):
            text = PART_SEPARATOR + text
        self._thought = (at, part)
        self._spoken.add(at)
        self._reasoning.append(text)
        return [ReasoningChunk(text)]

    def _add_arguments(self, at: int, text: Any) -> list[Chunk]:
        if at not in self._calls or not isinstance(text, str) or not text:
            return []
        self._spoken.add(at)
        return [ArgumentsChunk(*self._calls[at], text)]

    def _start_item(self, at: int, raw: bytes) -> list[Chunk]:
        item = ITEM.decode(raw) if raw else ResponsesOutputItem()
        if item.type != "function_call" or at in self._calls:
            return []
        self._calls[at] = (len(self._calls), item.name or "")
        return [ArgumentsChunk(*self._calls[at], "")]

    def _finish_item(self, at: int, raw: bytes) -> list[Chunk]:
        """An item is whole. What of it was not told piece by piece is told now."""
        if not raw:
            return []
        item = ITEM.decode(raw)
        self._items[at] = raw
        chunks = self._start_item(at, raw)
        if at in self._spoken:
            return chunks
        if item.type == "function_call":
            return chunks + self._add_arguments(at, item.arguments)
        for piece in item.content or ():
            if item.type == "message":
                chunks += self._add_text(at, piece.text or piece.refusal, refused=piece.refusal is not None)
        for part, piece in enumerate(item.summary or ()):
            chunks += self._add_reasoning(at, part, piece.text)
        return chunks


def _convert_usage(tokens: ResponsesTokenCounts) -> Usage:
    before, after = tokens.input_tokens_details, tokens.output_tokens_details
    return Usage(
        input=tokens.input_tokens or 0,
        output=tokens.output_tokens or 0,
        cached=(before.cached_tokens or 0) if before else 0,
        reasoning=(after.reasoning_tokens or 0) if after else 0,
    )
