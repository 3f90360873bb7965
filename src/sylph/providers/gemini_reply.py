"""The packets of a Gemini answer, folded into one reply."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import Arguments, Chunk, Finish, Reasoning, Reply, Text
from sylph.providers.endpoint import Endpoint
from sylph.providers.gemini_messages import Call

FINISH: Mapping[str, Finish] = {
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
BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS")


class Counted(msgspec.Struct):
    promptTokenCount: int | None = None
    candidatesTokenCount: int | None = None
    cachedContentTokenCount: int | None = None
    thoughtsTokenCount: int | None = None
    toolUsePromptTokenCount: int | None = None


class Content(msgspec.Struct):
    parts: list[msgspec.Raw] | None = None


class Candidate(msgspec.Struct):
    content: Content | None = None
    finishReason: str | None = None
    finishMessage: str | None = None


class Feedback(msgspec.Struct):
    blockReason: str | None = None
    blockReasonMessage: str | None = None


class Packet(msgspec.Struct):
    candidates: list[Candidate] | None = None
    usageMetadata: Counted | None = None
    promptFeedback: Feedback | None = None
    error: Any = None


class _Piece(msgspec.Struct):
    text: str | None = None
    thought: bool | None = None
    thoughtSignature: str | None = None
    functionCall: Call | None = None


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

    def take(self, packet: Packet) -> list[Chunk]:
        if packet.usageMetadata is not None:
            self._usage = _usage(packet.usageMetadata)
        if packet.promptFeedback is not None and packet.promptFeedback.blockReason:
            raise self._blocked(packet.promptFeedback)
        if not packet.candidates:
            return []
        self.begun = True
        candidate = packet.candidates[0]
        parts = (candidate.content.parts if candidate.content else None) or []
        chunks = [chunk for part in parts for chunk in self._part(bytes(part))]
        if candidate.finishReason in BROKEN:
            raise self._broken(candidate)
        self.finish = candidate.finishReason or self.finish
        self.counted = packet.usageMetadata is not None
        return chunks

    def reply(self) -> Reply:
        return Reply(
            text="".join(self._text),
            finish=FINISH.get(self.finish) or ("calls" if self._calls else "stop"),
            reasoning="".join(self._reasoning),
            calls=tuple(self._calls),
            usage=self._usage,
            native="" if self._simple else f"[{','.join(map(_item, self._items))}]",
        )

    def _part(self, part: bytes) -> list[Chunk]:
        part = ESCAPED.sub(_unescaped, part)
        piece = PIECE.decode(part)
        if piece.functionCall is not None:
            return self._call(part, piece.functionCall, signed=bool(piece.thoughtSignature))
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
        return [Reasoning(piece.text) if piece.thought else Text(piece.text)]

    def _call(self, part: bytes, call: Call, *, signed: bool) -> list[Chunk]:
        arguments = bytes(call.args).decode()
        self._items.append(part.decode())
        self._simple = self._simple and not (signed or call.id or len(KEYS.decode(part)) > 1)
        made = ToolCall(call.id or f"call_{len(self._calls)}", call.name, arguments if arguments != "null" else "{}")
        self._calls.append(made)
        return [Arguments(len(self._calls) - 1, made.name, made.arguments)]

    def _blocked(self, said: Feedback) -> ProviderError:
        why = said.blockReasonMessage or f"the question was blocked ({said.blockReason})"
        return ProviderError(
            "refusal", f"{self._endpoint.name} declined to answer: {why}", next=["Say it differently."]
        )

    def _broken(self, candidate: Candidate) -> ProviderError:
        why = candidate.finishMessage or candidate.finishReason
        return ProviderError("format", f"{self._endpoint.name} made a call that cannot be read: {why}")


def _unescaped(found: re.Match[bytes]) -> bytes:
    return found[1] + bytes([int(found[2], 16)])


def _item(item: str | list[str]) -> str:
    return item if isinstance(item, str) else msgspec.json.encode({"text": "".join(item)}).decode()


def _usage(said: Counted) -> Usage:
    thoughts = said.thoughtsTokenCount or 0
    return Usage(
        input=(said.promptTokenCount or 0) + (said.toolUsePromptTokenCount or 0),
        output=(said.candidatesTokenCount or 0) + thoughts,
        cached=said.cachedContentTokenCount or 0,
        reasoning=thoughts,
    )
