"""The line to a running server: one connection for each thing that is asked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from sylph.core.errors import ProviderError, ServerGone, UserError
from sylph.interfaces.local_socket import protocol
from sylph.interfaces.local_socket.protocol import ClientGreeting, ServerGreeting
from sylph.interfaces.local_socket.unix_socket import connect_socket
from sylph.net.http_connection import HttpConnection, HttpResponse

# A server that takes longer than this to say that it is there is stuck.
HELLO_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 1 << 32
RETRY_SECONDS: Final = 0.5
# The pieces of a stream: four bytes of length, one that says what it is.
FRAME_HEAD: Final = 5
ITEM_FRAME, FAILURE_FRAME, END_FRAME, BEGIN_FRAME = b"i", b"f", b"e", b"b"


class SocketClient:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.hello: ServerGreeting | None = None
        self._opening: set[asyncio.Future[None]] = set()

    @property
    def pid(self) -> int:
        return self.hello.pid if self.hello else 0

    async def greet(self, greeting: ClientGreeting) -> ServerGreeting | None:
        """Who is there; None where nobody is. Raises UserError where somebody is, and does not answer."""
        try:
            async with (
                asyncio.timeout(HELLO_SECONDS),
                self._send_request(protocol.HELLO, protocol.encode_value(greeting)) as response,
            ):
                self.hello = protocol.decode_value(await response.read(), ServerGreeting)
                return self.hello
        except ServerGone:
            return None
        except TimeoutError as error:
            raise UserError(
                "The server of this home does not answer.",
                kind="server_silent",
                details={"socket": self._path},
                next=["sylph --alone …  works beside it", "sylph serve --status  tells which process it is"],
            ) from error

    async def call(self, name: str, **given: Any) -> Any:
        if name == "runtime.send":
            await self._wait_for_openings()
        async with self._send_request(
            name, protocol.encode_arguments(name, given), given.get("session", "")
        ) as response:
            data = await response.read(MAX_ANSWER_BYTES)
            if response.status != 200:
                raise protocol.decode_failure(data)
            return protocol.decode_result(name, data)

    async def stream(self, name: str, **given: Any) -> AsyncGenerator[Any, None]:
        session = given.get("session", "")
        opening = asyncio.get_running_loop().create_future()
        self._opening.add(opening)
        try:
            async with self._send_request(name, protocol.encode_arguments(name, given), session) as response:
                if response.status != 200:
                    raise protocol.decode_failure(await response.read())
                async for what, data in _read_frames(response):
                    if what == BEGIN_FRAME:
                        self._finish_opening(opening)
                    elif what == ITEM_FRAME:
                        yield protocol.decode_result(name, data)
                    elif what == FAILURE_FRAME:
                        error = protocol.decode_failure(data)
                        raise server_gone_error(session) if isinstance(error, ServerGone) else error
                    else:
                        return
                raise server_gone_error(session)
        finally:
            self._finish_opening(opening)

    async def wait_for_server(self) -> None:
        """Returns when there is a server again."""
        version = self.hello.version if self.hello else ""
        while await self.greet(ClientGreeting(version=version)) is None:  # noqa: ASYNC110 - a file says it
            await asyncio.sleep(RETRY_SECONDS)

    def _finish_opening(self, opening: "asyncio.Future[None]") -> None:
        self._opening.discard(opening)
        if not opening.done():
            opening.set_result(None)

    async def _wait_for_openings(self) -> None:
        """What is begun now is seen from its beginning by those who are about to watch."""
        await asyncio.sleep(0)
        if self._opening:
            await asyncio.wait(set(self._opening), timeout=HELLO_SECONDS)

    @asynccontextmanager
    async def _send_request(self, name: str, body: bytes, session: str = "") -> AsyncGenerator[HttpResponse, None]:
        connected = connect_socket(self._path, HELLO_SECONDS)
        if connected is None:
            raise server_gone_error(session)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: HttpConnection("the server"), sock=connected)
        head = f"POST {protocol.PREFIX}{name} HTTP/1.1\r\nHost: sylph\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            response = connection.send(head.encode() + body)
            await response.wait_head()
            yield response
        except ProviderError as error:
            if error.kind != ProviderError.kind or error.failure not in ("network", "cut", "format"):
                raise
            raise server_gone_error(session) from error
        finally:
            connection.close()


async def _read_frames(response: HttpResponse) -> AsyncGenerator[tuple[bytes, bytes], None]:
    held = bytearray()
    async for data in response:
        held += data
        while len(held) >= FRAME_HEAD and len(held) >= (end := FRAME_HEAD + int.from_bytes(held[:4])):
            yield bytes(held[4:FRAME_HEAD]), bytes(held[FRAME_HEAD:end])
            del held[:end]


def encode_frame(what: bytes, data: bytes = b"") -> bytes:
    return len(data).to_bytes(4) + what + data


def server_gone_error(session: str = "") -> ServerGone:
    return ServerGone(
        "The server has ended. What was running stays open in the log.",
        next=["sylph serve  goes on with it", f"{' '.join(['sylph resume', session]).strip()}  goes on with it here"],
    )
