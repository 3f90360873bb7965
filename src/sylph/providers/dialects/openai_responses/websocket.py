"""Responses over WebSockets: one connection for each family of prompts, and only what is new goes over it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Struct

from sylph.core.errors import ProviderError
from sylph.core.messages import Message
from sylph.core.provider import Chunk, KeepAlive, ModelReply, ModelRequest
from sylph.net.http_client import HttpClient
from sylph.net.websocket import WebSocket, WebSocketClosed, WebSocketDeclined
from sylph.providers.dialects.openai_responses.stream import ResponsesStream
from sylph.providers.endpoint import Endpoint
from sylph.providers.vendor_errors import error_from_response

# Services close a connection after an hour; a new one in good time costs nothing.
MAX_AGE_SECONDS = 55 * 60.0
MAX_CONNECTIONS = 8
# What says that the server has forgotten what we want to go on from, or wants a fresh connection.
FORGOTTEN = "previous_response_not_found"
CONNECTION_LIMIT = "websocket_connection_limit_reached"


class WebSocketUnavailable(ProviderError):
    """The WebSocket is of no use for this request; plain HTTP may do."""

    def __init__(self, why: str) -> None:
        super().__init__("network", why)


class ResponsesPrompt(Struct, frozen=True):
    """A request, ready to be said in full or from where the last one ended.

    `head` is all but the input, `base` what of it must be the same for an answer to be gone on from.
    """

    request: ModelRequest
    head: bytes
    base: bytes
    items: Sequence[Sequence[msgspec.Raw]]

    def encode_request(self, begin: int = 0, previous: str = "") -> bytes:
        goes_on = b'"previous_response_id":%b,' % msgspec.json.encode(previous) if previous else b""
        items = b",".join(bytes(raw) for made in self.items[begin:] for raw in made)
        return b'{"type":"response.create",%b%b,"input":[%b]}' % (goes_on, self.head[1:-1], items)


class _SocketConnection(Struct):
    """One connection, and how the last answer on it ended."""

    socket: WebSocket
    since: float
    busy: bool = False
    base: bytes = b""
    messages: tuple[Message, ...] = ()
    reply: ModelReply | None = None
    id: str = ""

    def is_extended_by(self, prompt: ResponsesPrompt) -> bool:
        """Whether the prompt is the last one, its answer and something more."""
        messages, known = prompt.request.messages, len(self.messages)
        if self.reply is None or not self.id or prompt.base != self.base or len(messages) < known + 2:
            return False
        return messages[:known] == self.messages and _is_same_reply(messages[known], self.reply)


class ResponsesSockets:
    def __init__(self, endpoint: Endpoint, client: HttpClient) -> None:
        self._endpoint, self._client = endpoint, client
        self._lines: dict[str, _SocketConnection] = {}
        self._declined = ""

    async def stream_reply(self, prompt: ResponsesPrompt) -> AsyncGenerator[Chunk, None]:
        """The answer. Raises NoSocket only as long as nothing of it was told."""
        line = await self._acquire_connection(prompt.request.family)
        fresh, told, whole = not line.id, False, False
        line.busy = True
        try:
            async for chunk in self._stream_over(line, prompt):
                told = told or not isinstance(chunk, KeepAlive)
                whole = isinstance(chunk, ModelReply)
                yield chunk
        except WebSocketClosed as error:
            if told:
                raise
            if fresh:
                raise WebSocketUnavailable(str(error)) from error
        finally:
            line.busy = False
            if not whole:
                # What else comes on it belongs to an answer that nobody waits for any more.
                self._drop_connection(line)
        if not whole:
            # It was closed while nobody looked.
            async for chunk in self.stream_reply(prompt):
                yield chunk

    async def close(self) -> None:
        lines = [*self._lines.values()]
        self._lines.clear()
        await asyncio.gather(*(line.socket.close() for line in lines))

    async def _stream_over(self, line: _SocketConnection, prompt: ResponsesPrompt) -> AsyncGenerator[Chunk, None]:
        begin, previous = 0, ""
        if line.is_extended_by(prompt):
            begin, previous = len(line.messages) + 1, line.id
        stream = ResponsesStream(self._endpoint, prompt.request.model)
        line.socket.send(prompt.encode_request(begin, previous))
        line.reply = None
        while not stream.done:
            data = await line.socket.receive()
            if previous and FORGOTTEN.encode() in data[:4096]:
                previous = ""
                line.socket.send(prompt.encode_request())
                continue
            if CONNECTION_LIMIT.encode() in data[:4096]:
                raise WebSocketClosed(line.socket.where, 1013, "it has been open for too long")
            for chunk in stream.take_event(data) or (KeepAlive(),):
                yield chunk
        for chunk in stream.close():
            if isinstance(chunk, ModelReply):
                line.base, line.messages, line.reply = prompt.base, prompt.request.messages, chunk
                line.id = stream.id
            yield chunk

    async def _acquire_connection(self, family: str) -> _SocketConnection:
        """The connection of that family, a new one where there is none that can be used."""
        if self._declined:
            raise WebSocketUnavailable(self._declined)
        now = asyncio.get_running_loop().time()
        line = self._lines.get(family)
        if line is not None and line.busy:
            raise WebSocketUnavailable("Another answer is on its way over it.")
        if line is not None and line.socket.alive and now - line.since < MAX_AGE_SECONDS:
            return line
        if line is not None:
            self._drop_connection(line)
        self._evict_idle()
        line = self._lines[family] = _SocketConnection(await self._open_socket(), now)
        return line

    async def _open_socket(self, stale: str = "") -> WebSocket:
        endpoint = self._endpoint
        key = await endpoint.resolve_key(stale)
        headers = endpoint.headers_with_key(key)
        try:
            return await WebSocket.open(
                self._client, endpoint.url_for("responses"), headers=headers, timeouts=endpoint.timeouts
            )
        except WebSocketDeclined as error:
            if error.status == 401 and endpoint.login is not None and not stale:
                return await self._open_socket(key)
            if error.status in (401, 402, 403, 429) or error.status >= 502:
                raise error_from_response(
                    endpoint, "", error.body, status=error.status, headers=error.headers
                ) from None
            self._declined = str(error)
            raise WebSocketUnavailable(str(error)) from None
        except ProviderError as error:
            raise WebSocketUnavailable(str(error)) from error

    def _evict_idle(self) -> None:
        """Makes room: the oldest of those that nobody uses goes."""
        idle = [line for line in self._lines.values() if not line.busy]
        if len(self._lines) >= MAX_CONNECTIONS and idle:
            self._drop_connection(min(idle, key=lambda line: line.since))

    def _drop_connection(self, line: _SocketConnection) -> None:
        line.socket.abort()
        self._lines = {family: each for family, each in self._lines.items() if each is not line}


def _is_same_reply(message: Message, reply: ModelReply) -> bool:
    """Whether a message of the history is that very answer."""
    if message.role != "assistant":
        return False
    if reply.native:
        return message.native is not None and message.native.items == reply.native
    return message.native is None and not message.calls and message.text == reply.text
