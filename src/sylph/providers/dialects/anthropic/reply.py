"""The events of an Anthropic message, folded into one reply."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, FinishReason, ModelReply, ReasoningChunk, TextChunk
from sylph.providers.dialects.anthropic.messages import ensure_json_object

FINISH: Mapping[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
PAUSED = "pause_turn"


class AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class AnthropicMessageStart(msgspec.Struct):
    usage: AnthropicUsage | None = None
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None


class AnthropicDelta(msgspec.Struct):
    """What a delta adds: to a block, or (the stop reason) to the message."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: msgspec.Raw = msgspec.Raw()
    stop_reason: str | None = None


class AnthropicEvent(msgspec.Struct):
    """One event of a stream, or the whole message of a server that does not stream."""

    type: str = ""
    index: int = 0
    message: AnthropicMessageStart | None = None
    content_block: dict[str, Any] | None = None
    delta: AnthropicDelta | None = None
    usage: AnthropicUsage | None = None
    error: Any = None
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None


class _Block(msgspec.Struct):
    """A block under way. `start` is how it began, the lists what its deltas added."""

    start: dict[str, Any]
    text: list[str] = []
    thinking: list[str] = []
    signature: list[str] = []
    json: list[str] = []
    citations: list[msgspec.Raw] = []

    @property
    def kind(self) -> str:
        return str(self.start.get("type", ""))

    @property
    def arguments(self) -> str:
        given = self.start.get("input")
        return "".join(self.json) or (msgspec.json.encode(given).decode() if given else "{}")

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing that its words or its call do not say."""
        return self.kind == "tool_use" or (self.kind == "text" and not self.start.get("citations"))

    def encode_block(self) -> bytes:
        """The block as it has to go back."""
        made = dict(self.start)
        if self.kind in ("text", "thinking"):
            made[self.kind] = "".join(self.text or self.thinking)
        if self.signature:
            made["signature"] = "".join(self.signature)
        if self.json or "input" in made:
            made["input"] = ensure_json_object(self.arguments)
        if self.citations:
            made["citations"] = [*(made.get("citations") or []), *self.citations]
        elif made.get("citations", 1) is None:
            del made["citations"]
        return msgspec.json.encode(made)


class AnthropicReply:
    """Takes events as they come and gives what they add; `reply` is what it all came to.

    A turn that its service pauses goes on in further messages: `resume` before the next one.
    """

    def __init__(self, *, answer: str = "") -> None:
        self.stop = ""
        self.begun = self.ended = False
        self._answer = answer
        self._blocks: list[_Block] = []
        self._places: dict[int, int] = {}
        self._calls = 0
        self._usage = self._before = Usage()

    def resume(self) -> None:
        self.stop, self.ended = "", False
        self._places.clear()
        self._before, self._usage = self._before + self._usage, Usage()

    def take_event(self, packet: AnthropicEvent) -> list[Chunk]:
        take = EVENT_HANDLERS.get(packet.type)
        return take(self, packet) if take else []

    def native_blocks(self) -> list[bytes]:
        """The blocks that can go back: not those that are empty, and no thinking that led to nothing."""
        blocks = [block for block in self._blocks if block.kind != "text" or block.text]
        while blocks and blocks[-1].kind.endswith("thinking"):
            blocks.pop()
        return [block.encode_block() for block in blocks]

    def build_reply(self) -> ModelReply:
        calls = tuple(
            ToolCall(str(block.start.get("id") or f"call_{at}"), str(block.start.get("name", "")), block.arguments)
            for at, block in enumerate(block for block in self._blocks if block.kind == "tool_use")
        )
        text = "".join(piece for block in self._blocks if block.kind == "text" for piece in block.text)
        if self._answer and calls:
            text, calls = calls[0].arguments, ()
        return ModelReply(
            text=text,
            finish=FINISH.get(self.stop) or ("calls" if calls else "stop"),
            reasoning="".join(piece for block in self._blocks for piece in block.thinking),
            calls=calls,
            usage=self._before + self._usage,
            native="" if self._answer or self._is_simple() else f"[{b','.join(self.native_blocks()).decode()}]",
        )

    def _is_simple(self) -> bool:
        """Whether words and calls, in this order, are all there is: then they say it themselves."""
        kinds = [block.kind for block in self._blocks]
        plain = all(block.is_plain and not block.citations for block in self._blocks)
        return (plain and "text" not in kinds[1:]) or not self.native_blocks()

    def start_message(self, packet: AnthropicEvent) -> list[Chunk]:
        self.begun = True
        message = packet.message or AnthropicMessageStart()
        self._count_usage(message.usage)
        return []

    def start_block(self, packet: AnthropicEvent) -> list[Chunk]:
        block = _Block(packet.content_block or {})
        self._places[packet.index] = len(self._blocks)
        self._blocks.append(block)
        if block.kind == "text":
            return self._add_piece(block, AnthropicDelta(text=_as_text(block.start.get("text"))))
        if block.kind == "thinking":
            return self._add_piece(block, AnthropicDelta(thinking=_as_text(block.start.get("thinking"))))
        if block.kind == "tool_use" and not self._answer:
            return [ArgumentsChunk(self._call_index(block), str(block.start.get("name", "")), "")]
        return []

    def add_delta(self, packet: AnthropicEvent) -> list[Chunk]:
        at = self._places.get(packet.index)
        if at is None or packet.delta is None:
            return []
        return self._add_piece(self._blocks[at], packet.delta)

    def update_message(self, packet: AnthropicEvent) -> list[Chunk]:
        if packet.delta is not None and packet.delta.stop_reason:
            self.stop = packet.delta.stop_reason
        self._count_usage(packet.usage)
        return []

    def end_message(self, packet: AnthropicEvent) -> list[Chunk]:  # noqa: ARG002 - the event says all
        self.ended = True
        return []

    def take_document(self, packet: AnthropicEvent) -> list[Chunk]:
        """A whole message at once."""
        self.begun = self.ended = True
        self._count_usage(packet.usage)
        self.stop = packet.stop_reason or "end_turn"
        chunks: list[Chunk] = []
        for at, block in enumerate(packet.content or ()):
            chunks += self.start_block(AnthropicEvent(index=at, content_block=block))
        return chunks

    def _add_piece(self, block: _Block, piece: AnthropicDelta) -> list[Chunk]:
        if piece.signature:
            block.signature.append(piece.signature)
        if citation := bytes(piece.citation):
            block.citations.append(msgspec.Raw(citation.decode()))
        if piece.thinking:
            block.thinking.append(piece.thinking)
            return [ReasoningChunk(piece.thinking)]
        if piece.text:
            block.text.append(piece.text)
            return [TextChunk(piece.text)]
        if piece.partial_json:
            block.json.append(piece.partial_json)
            if block.kind == "tool_use":
                return [self._arguments_chunk(block, piece.partial_json)]
        return []

    def _arguments_chunk(self, block: _Block, piece: str) -> Chunk:
        if self._answer:
            return TextChunk(piece)
        return ArgumentsChunk(self._call_index(block), str(block.start.get("name", "")), piece)

    def _call_index(self, block: _Block) -> int:
        calls = (each for each in self._blocks if each.kind == "tool_use")
        return next(at for at, each in enumerate(calls) if each is block)

    def _count_usage(self, said: AnthropicUsage | None) -> None:
        """Every field counts from the beginning, and replaces what was said of it before."""
        if said is None:
            return
        known = self._usage
        fresh = known.input - known.cached - known.written if said.input_tokens is None else said.input_tokens
        cached = known.cached if said.cache_read_input_tokens is None else said.cache_read_input_tokens
        written = known.written if said.cache_creation_input_tokens is None else said.cache_creation_input_tokens
        output = known.output if said.output_tokens is None else said.output_tokens
        self._usage = Usage(input=fresh + cached + written, output=output, cached=cached, written=written)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


EVENT_HANDLERS: Mapping[str, Callable[[AnthropicReply, AnthropicEvent], list[Chunk]]] = {
    "message_start": AnthropicReply.start_message,
    "content_block_start": AnthropicReply.start_block,
    "content_block_delta": AnthropicReply.add_delta,
    "message_delta": AnthropicReply.update_message,
    "message_stop": AnthropicReply.end_message,
    "message": AnthropicReply.take_document,
}
