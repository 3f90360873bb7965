"""The body of an answer, read as it comes: a stream of events, or one whole document where a server does not stream."""

from collections.abc import Callable

from sylph.core.errors import ProviderError
from sylph.core.provider import Alive, Chunk
from sylph.providers.endpoint import Endpoint
from sylph.providers.failures import excerpt, failure
from sylph.providers.sse import Event, Parser

ALIVE: Chunk = Alive()
DONE = b"[DONE]"
DOCUMENT_LIMIT = 32 << 20
Take = Callable[[bytes], list[Chunk]]
"""What the data of an event, or a document, adds to the answer."""


class Body:
    """Feed it bytes; it gives what they add. `what` names what is read, for those who are told that it is not that."""

    def __init__(self, endpoint: Endpoint, model: str, what: str, take: Take) -> None:
        self.whole = False
        self._endpoint, self._model, self._what, self._take = endpoint, model, what, take
        self._parser = Parser()
        self._start = b""
        self._document: bytearray | None = None

    def feed(self, piece: bytes) -> list[Chunk]:
        """What `piece` adds, at least a sign of life."""
        if not self._start:
            self._start = piece.lstrip()
            self._document = bytearray() if self._start[:1] in (b"{", b"[", b"<") else None
        if self._document is None:
            return self._events(self._parser.feed(piece)) or [ALIVE]
        self._document += piece
        if len(self._document) > DOCUMENT_LIMIT:
            raise self.unreadable()
        return [ALIVE]

    def close(self) -> list[Chunk]:
        chunks = self._events(self._parser.close())
        if self._document is not None:
            chunks += self._take(bytes(self._document))
            self.whole = True
        return chunks

    def ended(self, *, begun: bool) -> ProviderError:
        """The error for a body that is over before its answer is."""
        if begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self.unreadable()

    def unreadable(self, data: bytes = b"") -> ProviderError:
        shown = excerpt(data or self._start) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not {self._what}: {shown}")

    def _events(self, events: list[Event]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for event in events:
            if event.name == "error":
                raise failure(self._endpoint, self._model, event.data)
            if event.data and event.data != DONE:
                chunks += self._take(event.data)
        return chunks
