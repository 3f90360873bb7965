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
from sylph.interfaces.http.house import House
from sylph.interfaces.own import calls
from sylph.interfaces.own.calls import Greeting, Hello
from sylph.interfaces.own.find import differing
from sylph.interfaces.own.line import BEGUN, ENDED, FAILED, ITEM, gone, piece

logger = logging.getLogger("sylph.http")
Over = set["asyncio.Task[None]"]


class Direct:
    def __init__(self, app: ASGIApp, house: House) -> None:
        self._app, self._house = app, house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(calls.PREFIX):
            await self._app(scope, receive, send)
            return
        name, body = scope["path"].removeprefix(calls.PREFIX), await _body(receive)
        # It is over when whoever asked is gone, or the server ends.
        over = {asyncio.create_task(_gone(receive)), asyncio.create_task(_set(self._house.closing))}
        try:
            if name in calls.STREAMS:
                await self._stream(name, body, over, send)
            else:
                status, data = await self._answer(name, body, over)
                await _start(send, status, len(data))
                await send({"type": "http.response.body", "body": data})
        finally:
            for each in over:
                each.cancel()

    async def _answer(self, name: str, body: bytes, over: Over) -> tuple[int, bytes]:
        try:
            if name == calls.HELLO:
                return 200, calls.encode(self._hello(calls.decode_as(body, Greeting)))
            if name not in calls.CALLS:
                raise UserError(f"There is nothing called {name!r} here.", kind="not_found")
            asked = self._method(name)(**calls.read_arguments(name, body))
            result = await (_wait(asked, over) if name in calls.WAITING else asked)
            return 200, calls.result(result)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it is
            return 400, calls.failure(_told(name, error))

    async def _stream(self, name: str, body: bytes, over: Over, send: Send) -> None:
        try:
            items = cast("AsyncGenerator[Any, None]", self._method(name)(**calls.read_arguments(name, body)))
        except Exception as error:  # noqa: BLE001 - the same
            data = calls.failure(_told(name, error))
            await _start(send, 400, len(data))
            await send({"type": "http.response.body", "body": data})
            return
        await _start(send, 200)

        async def pass_on(what: bytes, data: bytes = b"", *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": piece(what, data), "more_body": more})

        async with aclosing(items):
            coming = asyncio.ensure_future(anext(items, None))
            # It has had its turn when this returns, and stands in line for what happens.
            await asyncio.sleep(0)
            await pass_on(BEGUN)
            try:
                while (item := await _wait(coming, over)) is not None:
                    await pass_on(ITEM, calls.result(item))
                    coming = asyncio.ensure_future(anext(items, None))
                await pass_on(ENDED, more=False)
            except Exception as error:  # noqa: BLE001 - the same
                await pass_on(FAILED, calls.failure(_told(name, error)), more=False)
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await coming

    def _method(self, name: str) -> Any:
        owner, _, method = name.partition(".")
        return getattr(self._house.app if owner == "app" else self._house.app.runtime, method)

    def _hello(self, greeting: Greeting) -> Hello:
        # Whoever comes has perhaps just changed something.
        self._house.live.look()
        return Hello(
            version=__version__,
            pid=os.getpid(),
            url=self._house.address.url,
            started=self._house.started,
            differs=differing(greeting, self._house.app.config.environ),
            pending=tuple(self._house.live.pending),
        )


async def _wait(asked: Awaitable[Any], over: Over) -> Any:
    """What comes of it, unless it is over before."""
    task = asyncio.ensure_future(asked)
    if not task.done():
        await asyncio.wait({task, *over}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    raise gone()


def _told(name: str, error: Exception) -> SylphError:
    """The error as whoever asked sees it. What nobody expected is recorded here as well."""
    if isinstance(error, SylphError):
        return error
    if isinstance(error, (msgspec.DecodeError, UnicodeDecodeError)):
        return UserError(f"This cannot be read: {error}", kind="bad_body")
    logger.error("%s failed", name, exc_info=error)
    return StoreError("The server made a mistake; its log says which.", kind="internal", next=["sylph --alone …"])


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _start(send: Send, status: int, length: int | None = None) -> None:
    headers = [(b"content-type", b"application/vnd.sylph.own")]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
