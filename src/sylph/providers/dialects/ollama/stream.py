"""An answer of Ollama, read as it comes: one JSON object on each line."""

from typing import Any

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.messages import ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, KeepAlive, ModelReply, ReasoningChunk, TextChunk
from sylph.providers.dialects.ollama.messages import OllamaThinking
from sylph.providers.endpoint import Endpoint
from sylph.providers.vendor_errors import body_excerpt, error_from_response

ALIVE: Chunk = KeepAlive()
LINE_LIMIT = 8 << 20


class _Function(msgspec.Struct, gc=False):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: str | None = None


class _MessageDelta(msgspec.Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _StreamLine(msgspec.Struct, gc=False):
    message: _MessageDelta | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


LINE = msgspec.json.Decoder(_StreamLine, strict=False)


class OllamaStream:
    """Feed it the bytes of the body; it gives what they say, and `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.done = False
        self._endpoint, self._model = endpoint, model
        self._held = b""
        self._begun = False
        self._reason = ""
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolCall] = []
        self._usage = Usage()

    @property
    def complete(self) -> bool:
        """Whether the answer is all there, whatever happens to the connection now."""
        return self.done

    def feed(self, piece: bytes) -> list[Chunk]:
        """What `piece` adds, at least a sign of life."""
        *lines, self._held = (self._held + piece).split(b"\n") if b"\n" in piece else (self._held + piece,)
        if len(self._held) > LINE_LIMIT:
            raise ProviderError("format", f"The stream holds a line of more than {LINE_LIMIT:,} bytes.")
        chunks = [chunk for line in lines if line.strip() for chunk in self._read_line(line)]
        return chunks or [ALIVE]

    def close(self) -> list[Chunk]:
        rest, self._held = self._held, b""
        chunks = self._read_line(rest) if rest.strip() else []
        if not self.done:
            raise self._truncation_error()
        if self._reason == "load" and not (self._text or self._calls):
            raise ProviderError("overloaded", f"{self._endpoint.name} is still loading {self._model}.")
        return [*chunks, self._build_reply()]

    def _read_line(self, line: bytes) -> list[Chunk]:
        try:
            packet = LINE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._format_error(line) from None
        if packet.error:
            raise error_from_response(self._endpoint, self._model, line)
        if packet.message is None and not packet.done:
            raise self._format_error(line)
        self._begun = True
        if packet.done:
            self.done, self._reason = True, packet.done_reason or "stop"
            self._usage = Usage(input=packet.prompt_eval_count or 0, output=packet.eval_count or 0)
        return self._add_message(packet.message) if packet.message is not None else []

    def _add_message(self, said: _MessageDelta) -> list[Chunk]:
        chunks: list[Chunk] = []
        if said.thinking:
            self._thinking.append(said.thinking)
            chunks.append(ReasoningChunk(said.thinking))
        if said.content:
            self._text.append(said.content)
            chunks.append(TextChunk(said.content))
        for call in said.tool_calls or ():
            at, given = len(self._calls), bytes(call.function.arguments).decode()
            self._calls.append(ToolCall(call.id or f"call_{at}", call.function.name, given or "{}"))
            chunks.append(ArgumentsChunk(at, call.function.name, given))
        return chunks

    def _build_reply(self) -> ModelReply:
        thinking = "".join(self._thinking)
        ended = "length" if self._reason == "length" else "calls" if self._calls else "stop"
        return ModelReply(
            text="".join(self._text),
            finish=ended,
            reasoning=thinking,
            calls=tuple(self._calls),
            usage=self._usage,
            # Models that think between their calls want to see it again.
            native=msgspec.json.encode(OllamaThinking(thinking)).decode() if thinking and self._calls else "",
        )

    def _truncation_error(self) -> ProviderError:
        if self._begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self._format_error(b"")

    def _format_error(self, data: bytes) -> ProviderError:
        shown = body_excerpt(data) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not an answer of Ollama: {shown}")
