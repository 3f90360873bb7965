"""The body of a chat completion, read as it comes: a stream of events or one whole document."""

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, KeepAlive
from sylph.providers.dialects.openai_chat.messages import ChatReasoning
from sylph.providers.dialects.openai_chat.reply import ChatPacket, ChatReply
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.sse import SseEvent, SseParser
from sylph.providers.vendor_errors import body_excerpt, error_from_response

ALIVE: Chunk = KeepAlive()
DONE = b"[DONE]"
DOCUMENT_LIMIT = 32 << 20
PACKET = msgspec.json.Decoder(ChatPacket, strict=False)


class ChatStream:
    """Feed it the bytes of the body; it gives what they say, and `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.done = False
        self._endpoint = endpoint
        self._model = model
        self._reply = ChatReply()
        self._parser = SseParser()
        self._start = b""
        self._document: bytearray | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer is all there, whatever happens to the connection now."""
        return self.done or bool(self._reply.finish)

    def feed(self, piece: bytes) -> list[Chunk]:
        """What `piece` adds, at least a sign of life."""
        if not self._start:
            self._start = piece.lstrip()
            # Not a stream: the server ignores our wish for one, or is no model server at all.
            self._document = bytearray() if self._start[:1] in (b"{", b"[", b"<") else None
        if self._document is None:
            return self._read_events(self._parser.feed(piece)) or [ALIVE]
        self._document += piece
        if len(self._document) > DOCUMENT_LIMIT:
            raise self._format_error()
        return [ALIVE]

    def close(self) -> list[Chunk]:
        chunks = self._read_events(self._parser.close())
        if self._document is not None:
            chunks += self._read_packet(bytes(self._document))
            self.done = self._reply.begun
        if not self.complete:
            raise self._truncation_error()
        reply = self._reply.build_reply()
        if reply.calls and reply.reasoning and "thoughts_back" in self._endpoint.quirks:
            reply = replace(reply, native=msgspec.json.encode(ChatReasoning(reply.reasoning)).decode())
        return [*chunks, reply]

    def _read_events(self, events: list[SseEvent]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for event in events:
            if event.data == DONE:
                self.done = True
                break
            if event.name == "error":
                raise error_from_response(self._endpoint, self._model, event.data)
            if event.data:
                chunks += self._read_packet(event.data)
        return chunks

    def _read_packet(self, data: bytes) -> list[Chunk]:
        try:
            packet = PACKET.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._format_error(data) from None
        if packet.error or packet.object == "error":
            raise error_from_response(self._endpoint, self._model, data)
        return self._reply.take_packet(packet)

    def _truncation_error(self) -> ProviderError:
        if self._reply.begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self._format_error()

    def _format_error(self, data: bytes = b"") -> ProviderError:
        shown = body_excerpt(data or self._start) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not a chat completion: {shown}")
