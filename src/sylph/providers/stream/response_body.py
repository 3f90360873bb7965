"""The body of an answer, read as it comes: a stream of events, or one whole document where a server does not stream."""

from collections.abc import Callable

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, KeepAlive
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.sse import SseEvent, SseParser
from sylph.providers.vendor_errors import body_excerpt, error_from_response

ALIVE: Chunk = KeepAlive()
DONE = b"[DONE]"
DOCUMENT_LIMIT = 32 << 20
ReadData = Callable[[bytes], list[Chunk]]
"""What the data of an event, or a document, adds to the answer."""


class BodyDecoder:
    """Feed it bytes; it gives what they add. `what` names what is read, for those who are told that it is not that."""

    def __init__(self, endpoint: Endpoint, model: str, what: str, take: ReadData) -> None:
        self.whole = False
        self._endpoint, self._model, self._what, self._take = endpoint, model, what, take
        self._parser = SseParser()
        self._start = b""
        self._document: bytearray | None = None

    def feed(self, piece: bytes) -> list[Chunk]:
        """What `piece` adds, at least a sign of life."""
        if not self._start:
            self._start = piece.lstrip()
            self._document = bytearray() if self._start[:1] in (b"{", b"[", b"<") else None
        if self._document is None:
            return self._read_events(self._parser.feed(piece)) or [ALIVE]
        self._document += piece
        if len(self._document) > DOCUMENT_LIMIT:
            raise self.format_error()
        return [ALIVE]

    def close(self) -> list[Chunk]:
        chunks = self._read_events(self._parser.close())
        if self._document is not None:
            chunks += self._take(bytes(self._document))
            self.whole = True
        return chunks

    def truncation_error(self, *, begun: bool) -> ProviderError:
        """The error for a body that is over before its answer is."""
        if begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self.format_error()

    def format_error(self, data: bytes = b"") -> ProviderError:
        shown = body_excerpt(data or self._start) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not {self._what}: {shown}")

    def _read_events(self, events: list[SseEvent]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for event in events:
            if event.name == "error":
                raise error_from_response(self._endpoint, self._model, event.data)
            if event.data and event.data != DONE:
                chunks += self._take(event.data)
        return chunks
