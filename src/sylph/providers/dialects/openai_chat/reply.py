"""The deltas of a chat completion, folded into one reply."""

from typing import Any

import msgspec

from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, FinishReason, ModelReply, ReasoningChunk, TextChunk

FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
}


class ChatFunctionDelta(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ChatCallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | int | None = None
    function: ChatFunctionDelta | None = None


class ChatMessageDelta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ChatCallDelta] | None = None
    function_call: ChatFunctionDelta | None = None


class ChatReplyChoice(msgspec.Struct, gc=False):
    delta: ChatMessageDelta | None = None
    message: ChatMessageDelta | None = None
    finish_reason: str | None = None


class ChatInputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class ChatOutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class ChatTokenCounts(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: ChatInputDetails | None = None
    completion_tokens_details: ChatOutputDetails | None = None


class ChatPacket(msgspec.Struct, gc=False):
    """One event of a stream, or the whole answer of a server that does not stream. Every field may be missing."""

    choices: list[ChatReplyChoice] | None = None
    usage: ChatTokenCounts | None = None
    error: Any = None
    object: str | None = None


class _Call(msgspec.Struct):
    id: str
    name: str
    arguments: list[str] = []


class ChatReply:
    """Takes packets as they come and gives what they add; `reply` is what it all came to."""

    def __init__(self) -> None:
        self.finish = ""
        self.begun = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._places: dict[int, int] = {}
        self._usage = Usage()

    def take_packet(self, packet: ChatPacket) -> list[Chunk]:
        if packet.usage is not None:
            self._usage = _convert_usage(packet.usage)
        if not packet.choices:
            return []
        self.begun = True
        choice = packet.choices[0]
        if choice.finish_reason:
            self.finish = choice.finish_reason
        delta = choice.delta or choice.message
        return [] if delta is None else self._add_delta(delta)

    def build_reply(self) -> ModelReply:
        calls = tuple(
            ToolCall(call.id or f"call_{at}", call.name, "".join(call.arguments) or "{}")
            for at, call in enumerate(self._calls)
        )
        # Some servers say "stop" although they call, or the other way round: what came counts.
        finish = FINISH.get(self.finish) or ("calls" if calls else "stop")
        return ModelReply(
            text="".join(self._text),
            finish=finish,
            reasoning="".join(self._reasoning),
            calls=calls,
            usage=self._usage,
        )

    def _add_delta(self, delta: ChatMessageDelta) -> list[Chunk]:
        chunks: list[Chunk] = []
        if thought := delta.reasoning_content or delta.reasoning:
            self._reasoning.append(thought)
            chunks.append(ReasoningChunk(thought))
        if text := delta.content or delta.refusal:
            self._text.append(text)
            chunks.append(TextChunk(text))
        for piece in delta.tool_calls or ():
            chunks.extend(self._add_call_delta(piece))
        if delta.function_call is not None:
            chunks.extend(self._add_call_delta(ChatCallDelta(index=0, function=delta.function_call)))
        return chunks

    def _add_call_delta(self, piece: ChatCallDelta) -> list[Chunk]:
        function = piece.function or ChatFunctionDelta()
        given, name = function.arguments, function.name or ""
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode() if given is not None else ""
        at = self._find_call(piece, name, text)
        call = self._calls[at]
        call.id = call.id or str(piece.id or "")
        if name != call.name:
            call.name += name
        if text:
            call.arguments.append(text)
        return [ArgumentsChunk(at, call.name, text)] if name or text else []

    def _find_call(self, piece: ChatCallDelta, name: str, text: str) -> int:
        """The call that a piece belongs to. Servers tell by index, by id, or only by the order."""
        if piece.index is not None:
            at = self._places.get(piece.index, -1)
        elif piece.id:
            at = next((at for at, call in enumerate(self._calls) if call.id == str(piece.id)), -1)
        else:
            at = -1 if name else len(self._calls) - 1
        if at >= 0 and not _starts_new_call(self._calls[at], piece, name, text):
            return at
        self._calls.append(_Call(str(piece.id or ""), name))
        if piece.index is not None:
            self._places[piece.index] = len(self._calls) - 1
        return len(self._calls) - 1


def _starts_new_call(call: _Call, piece: ChatCallDelta, name: str, text: str) -> bool:
    """Whether a piece that names a function begins a new call although its index is taken."""
    if not name or not call.name:
        return False
    if piece.id and call.id:
        return str(piece.id) != call.id
    return bool(text) and is_json("".join(call.arguments))


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def _convert_usage(tokens: ChatTokenCounts) -> Usage:
    before, after = tokens.prompt_tokens_details, tokens.completion_tokens_details
    return Usage(
        input=tokens.prompt_tokens or 0,
        output=tokens.completion_tokens or 0,
        cached=(before.cached_tokens or 0) if before else 0,
        reasoning=(after.reasoning_tokens or 0) if after else 0,
    )
