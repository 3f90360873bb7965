"""The events of a response, read as they come: over HTTP or over a WebSocket, or as one whole document."""

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, KeepAlive
from sylph.providers.dialects.openai_responses.reply import ResponsesObject, ResponsesReply, ResponsesStreamEvent
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.sse import SseParser
from sylph.providers.vendor_errors import body_excerpt, error_from_response

ALIVE: Chunk = KeepAlive()
DONE = b"[DONE]"
DOCUMENT_LIMIT = 32 << 20
EVENT = msgspec.json.Decoder(ResponsesStreamEvent, strict=False)
RESPONSE = msgspec.json.Decoder(ResponsesObject, strict=False)


class _ErrorEvent(msgspec.Struct):
    status: int | None = None
    response: msgspec.Raw = msgspec.Raw()


ERROR_EVENT = msgspec.json.Decoder(_ErrorEvent, strict=False)


class ResponsesStream:
    """Feed it the bytes of a body, or events one by one; `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint, self._model = endpoint, model
        self._reply = ResponsesReply()
        self._parser = SseParser()
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
            return self._read_events(piece) or [ALIVE]
        self._document += piece
        if len(self._document) > DOCUMENT_LIMIT:
            raise self._format_error()
        return [ALIVE]

    def take_event(self, data: bytes) -> list[Chunk]:
        """What one event adds."""
        self._start = self._start or data
        try:
            event = EVENT.decode(data)
            if event.type in ("error", "response.failed") or (not event.type and b'"error"' in data):
                raise self._event_error(data)
            return self._reply.take_event(event)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._format_error(data) from None

    def close(self) -> list[Chunk]:
        chunks = self._read_events(b"\n\n") if self._document is None else self._read_document(bytes(self._document))
        if not self.done:
            raise self._truncation_error()
        return [*chunks, self._reply.build_reply()]

    def _read_events(self, piece: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        for event in self._parser.feed(piece):
            if event.data and event.data != DONE:
                chunks += self.take_event(event.data)
        return chunks

    def _read_document(self, data: bytes) -> list[Chunk]:
        try:
            response = RESPONSE.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._format_error(data) from None
        if response.error or response.status == "failed":
            raise error_from_response(self._endpoint, self._model, data)
        if response.output is None:
            raise self._format_error(data)
        return self._reply.take_whole_response(response)

    def _event_error(self, data: bytes) -> ProviderError:
        """The complaint inside of an event; the one of a failed response is inside of that."""
        trouble = ERROR_EVENT.decode(data)
        body = bytes(trouble.response) or data
        return error_from_response(self._endpoint, self._model, body, status=trouble.status or 0)

    def _truncation_error(self) -> ProviderError:
        if self._reply.begun:
            return ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        return self._format_error()

    def _format_error(self, data: bytes = b"") -> ProviderError:
        shown = body_excerpt(data or self._start) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not a response: {shown}")
