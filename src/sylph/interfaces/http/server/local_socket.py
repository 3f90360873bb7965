"""The owner's own way in: the methods of the runtime themselves, for the command line of the same home.

It stands only at the socket that nobody else can open, before everything else, and is no part of the API.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, suppress
from typing import Any, cast

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from sylph import __version__
from sylph.core.errors import StoreError, SylphError, UserError
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.local_socket import protocol
from sylph.interfaces.local_socket.client import (
    BEGIN_FRAME,
    END_FRAME,
    FAILURE_FRAME,
    ITEM_FRAME,
    encode_frame,
    server_gone_error,
)
from sylph.interfaces.local_socket.discovery import differing_variables
from sylph.interfaces.local_socket.protocol import ClientGreeting, ServerGreeting

logger = logging.getLogger("sylph.http")
EndTasks = set["asyncio.Task[None]"]


class LocalSocketRpc:
    def __init__(self, app: ASGIApp, server: ServerState) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(protocol.PREFIX):
            await self._app(scope, receive, send)
            return
        name, body = scope["path"].removeprefix(protocol.PREFIX), await _read_body(receive)
        # It is over when whoever asked is gone, or the server ends.
        over = {asyncio.create_task(_wait_disconnect(receive)), asyncio.create_task(_wait_event(self._server.closing))}
        try:
            if name in protocol.STREAMS:
                await self._stream_results(name, body, over, send)
            else:
                status, data = await self._answer_call(name, body, over)
                await _start_response(send, status, len(data))
                await send({"type": "http.response.body", "body": data})
        finally:
            for each in over:
                each.cancel()

    async def _answer_call(self, name: str, body: bytes, over: EndTasks) -> tuple[int, bytes]:
        try:
            if name == protocol.HELLO:
                return 200, protocol.encode_value(self._answer_hello(protocol.decode_value(body, ClientGreeting)))
            if name not in protocol.CALLS:
                raise UserError(f"There is nothing called {name!r} here.", kind="not_found")
            asked = self._find_method(name)(**protocol.decode_arguments(name, body))
            result = await (_wait_unless_over(asked, over) if name in protocol.WAITING_CALLS else asked)
            return 200, protocol.encode_result(result)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it is
            return 400, protocol.encode_failure(_public_error(name, error))

    async def _stream_results(self, name: str, body: bytes, over: EndTasks, send: Send) -> None:
        try:
            items = cast("AsyncGenerator[Any, None]", self._find_method(name)(**protocol.decode_arguments(name, body)))
        except Exception as error:  # noqa: BLE001 - the same
            data = protocol.encode_failure(_public_error(name, error))
            await _start_response(send, 400, len(data))
            await send({"type": "http.response.body", "body": data})
            return
        await _start_response(send, 200)

        async def pass_on(what: bytes, data: bytes = b"", *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": encode_frame(what, data), "more_body": more})

        async with aclosing(items):
            coming = asyncio.ensure_future(anext(items, None))
            # It has had its turn when this returns, and stands in line for what happens.
            await asyncio.sleep(0)
            await pass_on(BEGIN_FRAME)
            try:
                while (item := await _wait_unless_over(coming, over)) is not None:
                    await pass_on(ITEM_FRAME, protocol.encode_result(item))
                    coming = asyncio.ensure_future(anext(items, None))
                await pass_on(END_FRAME, more=False)
            except Exception as error:  # noqa: BLE001 - the same
                await pass_on(FAILURE_FRAME, protocol.encode_failure(_public_error(name, error)), more=False)
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await coming

    def _find_method(self, name: str) -> Any:
        owner, _, method = name.partition(".")
        return getattr(self._server.app if owner == "app" else self._server.app.runtime, method)

    def _answer_hello(self, greeting: ClientGreeting) -> ServerGreeting:
        # Whoever comes has perhaps just changed something.
        self._server.live_config.check_files()
        return ServerGreeting(
            version=__version__,
            pid=os.getpid(),
            url=self._server.address.url,
            started=self._server.started,
            differs=differing_variables(greeting, self._server.app.config.environ),
            pending=tuple(self._server.live_config.pending),
        )


async def _wait_unless_over(asked: Awaitable[Any], over: EndTasks) -> Any:
    """What comes of it, unless it is over before."""
    task = asyncio.ensure_future(asked)
    if not task.done():
        await asyncio.wait({task, *over}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    raise server_gone_error()


def _public_error(name: str, error: Exception) -> SylphError:
    """The error as whoever asked sees it. What nobody expected is recorded here as well."""
    if isinstance(error, SylphError):
        return error
    if isinstance(error, (msgspec.DecodeError, UnicodeDecodeError)):
        return UserError(f"This cannot be read: {error}", kind="bad_body")
    logger.error("%s failed", name, exc_info=error)
    return StoreError("The server made a mistake; its log says which.", kind="internal", next=["sylph --alone …"])


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_event(event: asyncio.Event) -> None:
    await event.wait()


async def _start_response(send: Send, status: int, length: int | None = None) -> None:
    headers = [(b"content-type", b"application/vnd.sylph.own")]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
