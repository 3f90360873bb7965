"""The events of a response, read as they come: over HTTP or over a WebSocket, or as one whole document."""

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.provider import Alive, Chunk
from sylph.providers.endpoint import Endpoint
from sylph.providers.failures import excerpt, failure
from sylph.providers.responses_reply import Event, Response, ResponsesReply
from sylph.providers.sse import Parser

ALIVE: Chunk = Alive()
DONE = b"[DONE]"
DOCUMENT_LIMIT = 32 << 20
EVENT = msgspec.json.Decoder(Event, strict=False)
WHOLE = msgspec.json.Decoder(Response, strict=False)


class _Trouble(msgspec.Struct):
    status: int | None = None
    response: msgspec.Raw = msgspec.Raw()


TROUBLE = msgspec.json.Decoder(_Trouble, strict=False)


class ResponsesStream:
    """Feed it the bytes of a body, or events one by one; `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint, self._model = endpoint, model
        self._reply = ResponsesReply()
        self._parser = Parser()
        self._start = b""
        self._document: bytearray | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer is all there, whatever happens to the connection now."""
        return self.done

    @property
    def done(self) -> bool:
        """Whether the answer is all there, whatever happens to the connection now."""
        return self._reply.over

    @property
    def id(self) -> str:
        return self._reply.id

    def feed(self, piece: bytes) -> list[Chunk]:
        """What `piece` adds, at least a sign of life."""
        if not self._start:
            self._start = piece.lstrip()
            self._document = bytearray() if self._start[:1] in (b"{", b"[", b"<") else None
        if self._document is None:
            return self._events(piece) or [ALIVE]
        self._document += piece
        if len(self._document) > DOCUMENT_LIMIT:
            raise self._unreadable()
        return [ALIVE]

    def event(self, data: bytes) -> list[Chunk]:
        """What one event adds."""
        self._start = self._start or data
        try:
            event = EVENT.decode(data)
            if event.type in ("error", "response.failed") or (not event.type and b'"error"' in data):
                raise self._failure(data)
            return self._reply.take(event)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._unreadable(data) from None

    def close(self) -> list[Chunk]:
        chunks = self._events(b"\n\n") if self._document is None else self._whole(bytes(self._document))
        if not self.done:
            raise self._ended()
        return [*chunks, self._reply.reply()]

    def _events(self, piece: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        for event in self._parser.feed(piece):
            if event.data and event.data != DONE:
                chunks += self.event(event.data)
        return chunks

    def _whole(self, data: bytes) -> list[Chunk]:
        try:
            response = WHOLE.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._unreadable(data) from None
        if response.error or response.status == "failed":
            raise failure(self._endpoint, self._model, data)
        if response.output is None:
            raise self._unreadable(data)
        return self._reply.whole(response)

    def _failure(self, data: bytes) -> ProviderError:
        """The complaint inside of an event; the one of a failed response is inside of that."""
        trouble = TROUBLE.decode(data)
        body = bytes(trouble.response) or data
        return failure(self._endpoint, self._model, body, status=trouble.status or 0)

    def _ended(self) -> ProviderError:
        if self._reply.begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self._unreadable()

    def _unreadable(self, data: bytes = b"") -> ProviderError:
        shown = excerpt(data or self._start) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not a response: {shown}")
