"""The server as a process: its sockets, its start and its end."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from msgspec import Struct

from sylph.app import App
from sylph.core.errors import UserError
from sylph.interfaces.http.api import make
from sylph.interfaces.http.guard import Guard
from sylph.interfaces.http.house import House
from sylph.interfaces.http.keys import Keys

OWN = "sylph.sock"
KEYS = "keys.db"
# Requests that run get so long to end; streams end at once.
GRACE = 5


class Place(Struct, frozen=True, kw_only=True):
    host: str
    port: int


class Quiet(uvicorn.Server):
    """Signals are this program's, not each server's."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(app: App, place: Place, ready: Callable[[House, str], None]) -> None:
    """Serves until a signal ends it; `ready` is told the address when requests are taken."""
    keys = Keys(app.config.data / KEYS)
    house = House(app=app, keys=keys, workspace=Path.cwd())
    api = make(house)
    outer = _listen(place)
    own = _listen_own(app.config.data / OWN)
    servers = [_server(Guard(api, keys)), _server(Guard(api, keys, own=True))]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _end, house, servers)
    host, port = outer.getsockname()[:2]
    running = [
        asyncio.create_task(server.serve(sockets=[each])) for server, each in zip(servers, (outer, own), strict=True)
    ]
    try:
        await asyncio.wait({asyncio.create_task(_started(servers)), *running}, return_when=asyncio.FIRST_COMPLETED)
        ready(house, f"http://{host}:{port}")
        await asyncio.gather(*running)
    finally:
        _end(house, servers)
        (app.config.data / OWN).unlink(missing_ok=True)
        keys.close()


async def _started(servers: list[Quiet]) -> None:
    while not all(server.started for server in servers):  # noqa: ASYNC110 - uvicorn tells it by a flag
        await asyncio.sleep(0.005)


def _server(app: Guard) -> Quiet:
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - it is an ASGI application
        http="httptools",
        ws="websockets-sansio",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    return Quiet(config)


def _end(house: House, servers: list[Quiet]) -> None:
    house.closing.set()
    for server in servers:
        server.should_exit = True


def _listen(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((place.host, place.port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"{place.host}:{place.port} cannot be listened on: {error.strerror}.",
            kind="no_port",
            next=["sylph serve --port 0  takes any port that is free"],
        ) from error
    listening.listen(512)
    listening.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listening


def _listen_own(path: Path) -> socket.socket:
    """The owner's own way in: whoever can open it can read the store as well."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(mask)
    listening.listen(512)
    listening.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listening
