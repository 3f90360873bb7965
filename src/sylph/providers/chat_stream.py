"""The body of a chat completion, read as it comes: a stream of events or one whole document."""

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.provider import Alive, Chunk
from sylph.providers.chat_messages import Thought
from sylph.providers.chat_reply import ChatReply, Packet
from sylph.providers.endpoint import Endpoint
from sylph.providers.failures import excerpt, failure
from sylph.providers.sse import Event, Parser

ALIVE: Chunk = Alive()
DONE = b"[DONE]"
DOCUMENT_LIMIT = 32 << 20
PACKET = msgspec.json.Decoder(Packet, strict=False)


class ChatStream:
    """Feed it the bytes of the body; it gives what they say, and `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.done = False
        self._endpoint = endpoint
        self._model = model
        self._reply = ChatReply()
        self._parser = Parser()
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
            return self._events(self._parser.feed(piece)) or [ALIVE]
        self._document += piece
        if len(self._document) > DOCUMENT_LIMIT:
            raise self._unreadable()
        return [ALIVE]

    def close(self) -> list[Chunk]:
        chunks = self._events(self._parser.close())
        if self._document is not None:
            chunks += self._packet(bytes(self._document))
            self.done = self._reply.begun
        if not self.complete:
            raise self._ended()
        reply = self._reply.reply()
        if reply.calls and reply.reasoning and "thoughts_back" in self._endpoint.quirks:
            reply = replace(reply, native=msgspec.json.encode(Thought(reply.reasoning)).decode())
        return [*chunks, reply]

    def _events(self, events: list[Event]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for event in events:
            if event.data == DONE:
                self.done = True
                break
            if event.name == "error":
                raise failure(self._endpoint, self._model, event.data)
            if event.data:
                chunks += self._packet(event.data)
        return chunks

    def _packet(self, data: bytes) -> list[Chunk]:
        try:
            packet = PACKET.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._unreadable(data) from None
        if packet.error or packet.object == "error":
            raise failure(self._endpoint, self._model, data)
        return self._reply.take(packet)

    def _ended(self) -> ProviderError:
        if self._reply.begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self._unreadable()

    def _unreadable(self, data: bytes = b"") -> ProviderError:
        shown = excerpt(data or self._start) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not a chat completion: {shown}")
