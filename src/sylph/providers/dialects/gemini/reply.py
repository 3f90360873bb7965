"""The packets of a Gemini answer, folded into one reply."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, FinishReason, ModelReply, ReasoningChunk, TextChunk
from sylph.providers.dialects.gemini.messages import GeminiCall
from sylph.providers.endpoint import Endpoint

FINISH: Mapping[str, FinishReason] = {
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "LANGUAGE": "filtered",
    "IMAGE_SAFETY": "filtered",
}
# The model lost its way while it wrote; a second try may go better.
MALFORMED_REASONS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS")


class GeminiUsage(msgspec.Struct):
    promptTokenCount: int | None = None
    candidatesTokenCount: int | None = None
    cachedContentTokenCount: int | None = None
    thoughtsTokenCount: int | None = None
    toolUsePromptTokenCount: int | None = None


class GeminiContent(msgspec.Struct):
    parts: list[msgspec.Raw] | None = None


class GeminiCandidate(msgspec.Struct):
    content: GeminiContent | None = None
    finishReason: str | None = None
    finishMessage: str | None = None


class GeminiPromptFeedback(msgspec.Struct):
    blockReason: str | None = None
    blockReasonMessage: str | None = None


class GeminiPacket(msgspec.Struct):
    candidates: list[GeminiCandidate] | None = None
    usageMetadata: GeminiUsage | None = None
    promptFeedback: GeminiPromptFeedback | None = None
    error: Any = None


class _Piece(msgspec.Struct):
    text: str | None = None
    thought: bool | None = None
    thoughtSignature: str | None = None
    functionCall: GeminiCall | None = None


# This service escapes characters that JSON does not ask to be escaped. Secrets are not found in such a spelling.
ESCAPED = re.compile(rb"(?<!\\)((?:\\\\)*)\\u00(3[c-eC-E]|2[67])")
PIECE = msgspec.json.Decoder(_Piece)
KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class GeminiReply:
    """Takes packets as they come and gives what they add; `reply` is what it all came to."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.finish = ""
        self.begun = self.counted = False
        self._endpoint = endpoint
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        # Parts as they came; words that came one after the other are kept as pieces of one.
        self._items: list[str | list[str]] = []
        self._simple = True
        self._usage = Usage()

    def take_packet(self, packet: GeminiPacket) -> list[Chunk]:
        if packet.usageMetadata is not None:
            self._usage = _convert_usage(packet.usageMetadata)
        if packet.promptFeedback is not None and packet.promptFeedback.blockReason:
            raise self._blocked_error(packet.promptFeedback)
        if not packet.candidates:
            return []
        self.begun = True
        candidate = packet.candidates[0]
        parts = (candidate.content.parts if candidate.content else None) or []
        chunks = [chunk for part in parts for chunk in self._add_part(bytes(part))]
        if candidate.finishReason in MALFORMED_REASONS:
            raise self._malformed_error(candidate)
        self.finish = candidate.finishReason or self.finish
        self.counted = packet.usageMetadata is not None
        return chunks

    def build_reply(self) -> ModelReply:
        return ModelReply(
            text="".join(self._text),
            finish=FINISH.get(self.finish) or ("calls" if self._calls else "stop"),
            reasoning="".join(self._reasoning),
            calls=tuple(self._calls),
            usage=self._usage,
            native="" if self._simple else f"[{','.join(map(_encode_item, self._items))}]",
        )

    def _add_part(self, part: bytes) -> list[Chunk]:
        part = ESCAPED.sub(_unescape_match, part)
        piece = PIECE.decode(part)
        if piece.functionCall is not None:
            return self._add_call(part, piece.functionCall, signed=bool(piece.thoughtSignature))
        if piece.text is None or piece.thoughtSignature:
            # A signature, or a kind of part that only the service itself has to understand.
            self._items.append(part.decode())
            self._simple = False
        elif piece.text and not piece.thought:
            if not self._items or isinstance(self._items[-1], str):
                self._simple = self._simple and not self._items
                self._items.append([])
            words = self._items[-1]
            assert isinstance(words, list)
            words.append(piece.text)
        if not piece.text:
            return []
        (self._reasoning if piece.thought else self._text).append(piece.text)
        return [ReasoningChunk(piece.text) if piece.thought else TextChunk(piece.text)]

    def _add_call(self, part: bytes, call: GeminiCall, *, signed: bool) -> list[Chunk]:
        arguments = bytes(call.args).decode()
        self._items.append(part.decode())
        self._simple = self._simple and not (signed or call.id or len(KEYS.decode(part)) > 1)
        made = ToolCall(call.id or f"call_{len(self._calls)}", call.name, arguments if arguments != "null" else "{}")
        self._calls.append(made)
        return [ArgumentsChunk(len(self._calls) - 1, made.name, made.arguments)]

    def _blocked_error(self, said: GeminiPromptFeedback) -> ProviderError:
        why = said.blockReasonMessage or f"the question was blocked ({said.blockReason})"
        return ProviderError(
            "refusal", f"{self._endpoint.name} declined to answer: {why}", next=["Say it differently."]
        )

    def _malformed_error(self, candidate: GeminiCandidate) -> ProviderError:
        why = candidate.finishMessage or candidate.finishReason
        return ProviderError("format", f"{self._endpoint.name} made a call that cannot be read: {why}")


def _unescape_match(found: re.Match[bytes]) -> bytes:
    return found[1] + bytes([int(found[2], 16)])


def _encode_item(item: str | list[str]) -> str:
    return item if isinstance(item, str) else msgspec.json.encode({"text": "".join(item)}).decode()


def _convert_usage(said: GeminiUsage) -> Usage:
    thoughts = said.thoughtsTokenCount or 0
    return Usage(
        input=(said.promptTokenCount or 0) + (said.toolUsePromptTokenCount or 0),
        output=(said.candidatesTokenCount or 0) + thoughts,
        cached=said.cachedContentTokenCount or 0,
        reasoning=thoughts,
    )
