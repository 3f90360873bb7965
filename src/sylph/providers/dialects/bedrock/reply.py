"""The events of a Converse stream, folded into one reply."""

import base64
from collections.abc import Mapping

import msgspec

from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, FinishReason, ModelReply, ReasoningChunk, TextChunk
from sylph.providers.dialects.anthropic.messages import ensure_json_object

FINISH: Mapping[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "filtered",
    "content_filtered": "filtered",
}
MALFORMED_REASONS = ("malformed_tool_use", "malformed_model_output")


class ConverseToolUse(msgspec.Struct):
    toolUseId: str = ""
    name: str = ""
    input: str | None = None


class ConverseReasoning(msgspec.Struct):
    text: str | None = None
    signature: str | None = None
    redactedContent: str | None = None


class ConverseDelta(msgspec.Struct):
    text: str | None = None
    toolUse: ConverseToolUse | None = None
    reasoningContent: ConverseReasoning | None = None


class ConverseUsage(msgspec.Struct):
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheWriteInputTokens: int | None = None


class ConverseEvent(msgspec.Struct):
    """The payload of any event of a stream."""

    contentBlockIndex: int = 0
    start: ConverseDelta | None = None
    delta: ConverseDelta | None = None
    stopReason: str | None = None
    usage: ConverseUsage | None = None


class _Block(msgspec.Struct):
    use: ConverseToolUse | None = None
    text: list[str] = []
    input: list[str] = []
    thought: list[str] = []
    signature: list[str] = []
    redacted: list[bytes] = []

    @property
    def arguments(self) -> str:
        return "".join(self.input) or "{}"

    @property
    def is_opaque(self) -> bool:
        """Whether it holds what only the service itself can read."""
        return bool(self.signature or self.redacted)

    def encode_block(self) -> bytes | None:
        """The block as it has to go back; None for one that is empty, and for thinking that nobody signed."""
        if self.use is not None:
            use = {"toolUseId": self.use.toolUseId, "name": self.use.name, "input": ensure_json_object(self.arguments)}
            return msgspec.json.encode({"toolUse": use})
        if self.redacted:
            data = base64.b64encode(b"".join(self.redacted)).decode()
            return msgspec.json.encode({"reasoningContent": {"redactedContent": data}})
        if self.signature:
            thought = {"text": "".join(self.thought), "signature": "".join(self.signature)}
            return msgspec.json.encode({"reasoningContent": {"reasoningText": thought}})
        return msgspec.json.encode({"text": "".join(self.text)}) if self.text else None


class ConverseReply:
    """Takes events as they come and gives what they add; `reply` is what it all came to."""

    def __init__(self, *, answer: str = "") -> None:
        self.stop = ""
        self.begun = self.counted = False
        self._answer = answer
        self._blocks: dict[int, _Block] = {}
        self._usage = Usage()

    def take_event(self, packet: ConverseEvent) -> list[Chunk]:
        self.begun = True
        self.stop = packet.stopReason or self.stop
        if packet.usage is not None:
            self._usage, self.counted = _convert_usage(packet.usage), True
        piece = packet.delta or packet.start
        if piece is None:
            return []
        block = self._blocks.setdefault(packet.contentBlockIndex, _Block())
        return self._add_piece(block, piece)

    def build_reply(self) -> ModelReply:
        blocks = list(self._blocks.values())
        calls = tuple(
            ToolCall(use.toolUseId or f"call_{at}", use.name, block.arguments)
            for at, block in enumerate(block for block in blocks if block.use)
            if (use := block.use)
        )
        text = "".join(piece for block in blocks for piece in block.text)
        if self._answer and calls:
            text, calls = calls[0].arguments, ()
        items = [item for block in blocks if (item := block.encode_block())]
        # Thinking that led to nothing cannot go back.
        needed = not self._answer and any(block.is_opaque for block in blocks) and not blocks[-1].is_opaque
        return ModelReply(
            text=text,
            finish=FINISH.get(self.stop) or ("calls" if calls else "stop"),
            reasoning="".join(piece for block in blocks for piece in block.thought),
            calls=calls,
            usage=self._usage,
            native=f"[{b','.join(items).decode()}]" if needed else "",
        )

    def _add_piece(self, block: _Block, piece: ConverseDelta) -> list[Chunk]:
        if piece.reasoningContent is not None:
            return self._add_reasoning(block, piece.reasoningContent)
        if piece.text:
            block.text.append(piece.text)
            return [TextChunk(piece.text)]
        if piece.toolUse is None:
            return []
        if block.use is None:
            block.use = piece.toolUse
        block.input += [piece.toolUse.input] if piece.toolUse.input else []
        if self._answer:
            return [TextChunk(piece.toolUse.input)] if piece.toolUse.input else []
        number = sum(each.use is not None for each in self._blocks.values()) - 1
        return [ArgumentsChunk(number, block.use.name, piece.toolUse.input or "")]

    def _add_reasoning(self, block: _Block, thought: ConverseReasoning) -> list[Chunk]:
        if thought.signature:
            block.signature.append(thought.signature)
        if thought.redactedContent:
            block.redacted.append(base64.b64decode(thought.redactedContent))
        if not thought.text:
            return []
        block.thought.append(thought.text)
        return [ReasoningChunk(thought.text)]


def _convert_usage(said: ConverseUsage) -> Usage:
    """The service counts only what is new as input."""
    cached, written = said.cacheReadInputTokens or 0, said.cacheWriteInputTokens or 0
    return Usage(
        input=(said.inputTokens or 0) + cached + written,
        output=said.outputTokens or 0,
        cached=cached,
        written=written,
    )
