"""The server as a process: its start, what it sees to meanwhile, its end."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from sylph import __version__
from sylph.app import App
from sylph.config import Server
from sylph.core.errors import SylphError
from sylph.interfaces.http.api import make
from sylph.interfaces.http.direct import Direct
from sylph.interfaces.http.entrance import Entrance, open_entrance
from sylph.interfaces.http.guard import Guard, Own, Private
from sylph.interfaces.http.house import House
from sylph.interfaces.http.idempotency import Once
from sylph.interfaces.http.journal import close_journal, keep_journal
from sylph.interfaces.http.keys import Keys
from sylph.interfaces.http.life import lived, rest
from sylph.interfaces.http.listening import listen_own
from sylph.interfaces.http.live.hub import Hub
from sylph.interfaces.http.openai.errors import Translated
from sylph.interfaces.http.recorder import Recorder
from sylph.interfaces.http.systemd import notify
from sylph.interfaces.http.tls.doorman import Doorman
from sylph.interfaces.http.tls.shown import Shown
from sylph.interfaces.http.wire import Wire, wire
from sylph.interfaces.own.place import SOCKET
from sylph.interfaces.own.resident import Resident, Tenancy
from sylph.reload import Live

KEYS, REQUESTS = "keys.db", "requests.db"
# Requests that run get so long to end; streams end at once.
GRACE = 5
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Whoever does not take what is sent to them is not waited for at all.
UNSENT = 0.3
# The longest message of a WebSocket, in bytes, and the seconds between two signs of life, on both sides.
MESSAGE, BEAT = 1_000_000, 15
# Seconds between looks at: revoked credentials, when they were last used, the certificate.
SWEEP, REMEMBER, RENEW = 1, 60, 3600
logger = logging.getLogger("sylph.http")


class Quiet(uvicorn.Server):
    """Signals are this program's, not each server's; and a handshake that takes too long is given up."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    patience = 10.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        config, loop = self.config, asyncio.get_running_loop()
        state = dict[str, Any]()
        make_one = partial(config.http_protocol_class, config=config, server_state=self.server_state, app_state=state)
        context = config.ssl
        made = partial(Doorman, make_one, context, self.patience) if context else make_one
        self.servers = [await loop.create_server(made, sock=each) for each in sockets or ()]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(UNSENT, self._hang_up)
        await super().shutdown(sockets)

    def _hang_up(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport.get_write_buffer_size():
                connection.transport.abort()


async def serve(app: App, server: Server, ready: Callable[[House], None], *, seen: bool, fd: int | None = None) -> int:
    """Serves until a signal ends it; returns how many sessions were at work then.

    `ready` is called when requests are taken, and `seen` if somebody looks. `fd` is a socket that listens already.
    """
    # It is held until the process is gone: then everything is on the disk.
    tenancy = Tenancy.take(app.config.data)
    journal = keep_journal(app.config, app.runtime.veil)
    keys = Keys(app.config.data / KEYS)
    entrance = open_entrance(app, server, keys, seen=seen, fd=fd)
    house = House(
        app=app,
        keys=keys,
        hub=Hub(app.runtime),
        once=Once(app.config.data / REQUESTS),
        workspace=Path.cwd(),
        address=entrance.address,
        live=Live(app),
    )
    house.live.told = house.hub.configured
    tenancy.tell(_resident(house))
    api = make(house)
    own = listen_own(app.config.data / SOCKET)
    guard = Guard(api, keys, server, entrance.address)
    servers = [
        _server(
            Recorder(Translated(guard), house.counts),
            wire(server.connections, server.header_seconds),
            server,
            entrance,
        ),
        _server(
            Recorder(Private(Direct(Translated(Own(api, server)), house)), house.counts),
            wire(server.connections, server.header_seconds, own=True),
            server,
        ),
    ]
    _heed(house, servers)
    sockets = (entrance.listening, own)
    running = [asyncio.create_task(each.serve(sockets=[one])) for each, one in zip(servers, sockets, strict=True)]
    keeping = asyncio.create_task(_keep(guard, keys, entrance.shown))
    try:
        await asyncio.wait({asyncio.create_task(_started(servers)), *running}, return_when=asyncio.FIRST_COMPLETED)
        tenancy.tell(_resident(house, house.address.url))
        ready(house)
        return await _live(house, tenancy, servers, running)
    finally:
        keeping.cancel()
        _end(house, servers)
        logger.info("ends")
        if tenancy.stands:
            (app.config.data / SOCKET).unlink(missing_ok=True)
        house.once.close()
        keys.close()
        close_journal(journal)


async def _live(house: House, tenancy: Tenancy, servers: list[Quiet], running: "list[asyncio.Task[None]]") -> int:
    notify(house.app.config.environ, "READY=1")
    logger.info("serves at %s as process %d", house.address.url, os.getpid())
    async with lived(house, tenancy) as life:
        await asyncio.wait({life, *running}, return_when=asyncio.FIRST_COMPLETED)
        _end(house, servers)
        left, _ = await asyncio.gather(rest(house.app), asyncio.gather(*running))
        if life.done():
            life.result()
        return left


async def _keep(guard: Guard, keys: Keys, shown: Shown | None) -> None:
    """What has to be looked at now and then, as long as the server runs."""
    second = 0
    while True:
        await asyncio.sleep(SWEEP)
        second += SWEEP
        try:
            guard.live.sweep()
            if second % REMEMBER == 0:
                keys.remember()
            if shown and second % RENEW == 0:
                await asyncio.to_thread(shown.renew)
        except SylphError as error:
            logger.warning("%s", error)


async def _started(servers: list[Quiet]) -> None:
    while not all(server.started for server in servers):  # noqa: ASYNC110 - uvicorn tells it by a flag
        await asyncio.sleep(0.005)


def _server(app: ASGIApp, protocol: type[Wire], server: Server, entrance: Entrance | None = None) -> Quiet:
    # It would write down addresses with all that is in them, also those that are refused for it.
    log = logging.getLogger("uvicorn.error")
    log.setLevel(logging.WARNING)
    log.addFilter(_worth_telling)
    shown = entrance.shown if entrance else None
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - it is an ASGI application
        http=protocol,
        ws="websockets-sansio",
        ws_max_size=min(MESSAGE, int(server.body_mb * 1_000_000)),
        ws_ping_interval=BEAT,
        ws_ping_timeout=BEAT,
        # It costs more per piece of text than it saves.
        ws_per_message_deflate=False,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        ssl_context_factory=(lambda _, __: shown.context) if shown else None,
        timeout_graceful_shutdown=GRACE,
    )
    quiet = Quiet(config)
    quiet.patience = server.header_seconds
    return quiet


def _worth_telling(record: logging.LogRecord) -> bool:
    """It takes a WebSocket that was refused with an answer for one that was forgotten; the recorder knows better."""
    return "without completing handshake" not in record.getMessage()


def _resident(house: House, url: str = "") -> Resident:
    return Resident(pid=os.getpid(), version=__version__, started=house.started, url=url)


def _heed(house: House, servers: list[Quiet]) -> None:
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, _signalled, house, servers, number)


def _signalled(house: House, servers: list[Quiet], number: int) -> None:
    if house.closing.is_set():
        # Somebody insists. Nothing is lost: what was acknowledged is on the disk, and open turns go on later.
        os._exit(128 + number)
    _end(house, servers)


def _end(house: House, servers: list[Quiet]) -> None:
    if not house.closing.is_set():
        notify(house.app.config.environ, "STOPPING=1")
    house.closing.set()
    house.hub.end()
    for server in servers:
        server.should_exit = True
