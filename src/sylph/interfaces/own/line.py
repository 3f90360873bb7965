"""The line to a running server: one connection for each thing that is asked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from sylph.core.errors import ProviderError, ServerGone, UserError
from sylph.interfaces.own import calls
from sylph.interfaces.own.calls import Greeting, Hello
from sylph.interfaces.own.place import connect
from sylph.net.wire import Connection, Response

# A server that takes longer than this to say that it is there is stuck.
PATIENCE: Final = 5.0
LIMIT: Final = 1 << 32
BEAT: Final = 0.5
# The pieces of a stream: four bytes of length, one that says what it is.
HEAD: Final = 5
ITEM, FAILED, ENDED, BEGUN = b"i", b"f", b"e", b"b"


class Line:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.hello: Hello | None = None
        self._opening: set[asyncio.Future[None]] = set()

    @property
    def pid(self) -> int:
        return self.hello.pid if self.hello else 0

    async def greet(self, greeting: Greeting) -> Hello | None:
        """Who is there; None where nobody is. Raises UserError where somebody is, and does not answer."""
        try:
            async with asyncio.timeout(PATIENCE), self._asked(calls.HELLO, calls.encode(greeting)) as response:
                self.hello = calls.decode_as(await response.read(), Hello)
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
            await self._all_open()
        async with self._asked(name, calls.arguments(name, given), given.get("session", "")) as response:
            data = await response.read(LIMIT)
            if response.status != 200:
                raise calls.read_failure(data)
            return calls.read_result(name, data)

    async def stream(self, name: str, **given: Any) -> AsyncGenerator[Any, None]:
        session = given.get("session", "")
        opening = asyncio.get_running_loop().create_future()
        self._opening.add(opening)
        try:
            async with self._asked(name, calls.arguments(name, given), session) as response:
                if response.status != 200:
                    raise calls.read_failure(await response.read())
                async for what, data in _pieces(response):
                    if what == BEGUN:
                        self._opened(opening)
                    elif what == ITEM:
                        yield calls.read_result(name, data)
                    elif what == FAILED:
                        error = calls.read_failure(data)
                        raise gone(session) if isinstance(error, ServerGone) else error
                    else:
                        return
                raise gone(session)
        finally:
            self._opened(opening)

    async def back(self) -> None:
        """Returns when there is a server again."""
        version = self.hello.version if self.hello else ""
        while await self.greet(Greeting(version=version)) is None:  # noqa: ASYNC110 - a file says it
            await asyncio.sleep(BEAT)

    def _opened(self, opening: "asyncio.Future[None]") -> None:
        self._opening.discard(opening)
        if not opening.done():
            opening.set_result(None)

    async def _all_open(self) -> None:
        """What is begun now is seen from its beginning by those who are about to watch."""
        await asyncio.sleep(0)
        if self._opening:
            await asyncio.wait(set(self._opening), timeout=PATIENCE)

    @asynccontextmanager
    async def _asked(self, name: str, body: bytes, session: str = "") -> AsyncGenerator[Response, None]:
        connected = connect(self._path, PATIENCE)
        if connected is None:
            raise gone(session)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: Connection("the server"), sock=connected)
        head = f"POST {calls.PREFIX}{name} HTTP/1.1\r\nHost: sylph\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            response = connection.send(head.encode() + body)
            await response.head()
            yield response
        except ProviderError as error:
            if error.kind != ProviderError.kind or error.failure not in ("network", "cut", "format"):
                raise
            raise gone(session) from error
        finally:
            connection.close()


async def _pieces(response: Response) -> AsyncGenerator[tuple[bytes, bytes], None]:
    held = bytearray()
    async for data in response:
        held += data
        while len(held) >= HEAD and len(held) >= (end := HEAD + int.from_bytes(held[:4])):
            yield bytes(held[4:HEAD]), bytes(held[HEAD:end])
            del held[:end]


def piece(what: bytes, data: bytes = b"") -> bytes:
    return len(data).to_bytes(4) + what + data


def gone(session: str = "") -> ServerGone:
    return ServerGone(
        "The server has ended. What was running stays open in the log.",
        next=["sylph serve  goes on with it", f"{' '.join(['sylph resume', session]).strip()}  goes on with it here"],
    )
