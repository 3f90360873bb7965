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
from sylph.config import ServerSettings
from sylph.core.errors import SylphError
from sylph.interfaces.http.api.create_api import create_api
from sylph.interfaces.http.hub.stream_hub import StreamHub
from sylph.interfaces.http.kit.idempotency import IdempotencyStore
from sylph.interfaces.http.monitoring.request_log import RequestLogger
from sylph.interfaces.http.monitoring.server_log import start_server_log, stop_server_log
from sylph.interfaces.http.openai.errors import OpenAIErrorMiddleware
from sylph.interfaces.http.security.guard import ForwardedRequestFilter, LocalOwnerGuard, RequestGuard
from sylph.interfaces.http.security.tls.cert_reload import ReloadingCertificate
from sylph.interfaces.http.security.tls.http_redirect import TlsDetectProtocol
from sylph.interfaces.http.security.token_store import ServerTokenStore
from sylph.interfaces.http.server.background_tasks import run_background_tasks, wait_for_turns
from sylph.interfaces.http.server.bind import ServerBinding, bind_server
from sylph.interfaces.http.server.http_protocol import LimitedHttpProtocol, make_protocol
from sylph.interfaces.http.server.listen_socket import listen_local
from sylph.interfaces.http.server.local_socket import LocalSocketRpc
from sylph.interfaces.http.server.systemd import notify_supervisor
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.local_socket.server_lock import RunningServer, ServerLock
from sylph.interfaces.local_socket.unix_socket import SOCKET_NAME
from sylph.reload import ConfigReloader

TOKENS_FILE, IDEMPOTENCY_FILE = "keys.db", "requests.db"
# Requests that run get so long to end; streams end at once.
REQUEST_GRACE = 5
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Whoever does not take what is sent to them is not waited for at all.
ABORT_DELAY = 0.3
# The longest message of a WebSocket, in bytes, and the seconds between two signs of life, on both sides.
MAX_MESSAGE_BYTES, PING_INTERVAL = 1_000_000, 15
# Seconds between looks at: revoked credentials, when they were last used, the certificate.
SWEEP_INTERVAL, SAVE_INTERVAL, RENEW_INTERVAL = 1, 60, 3600
logger = logging.getLogger("sylph.http")


class UvicornServer(uvicorn.Server):
    """Signals are this program's, not each server's; and a handshake that takes too long is given up."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    handshake_timeout = 10.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        config, loop = self.config, asyncio.get_running_loop()
        state = dict[str, Any]()
        make_one = partial(config.http_protocol_class, config=config, server_state=self.server_state, app_state=state)
        context = config.ssl
        made = partial(TlsDetectProtocol, make_one, context, self.handshake_timeout) if context else make_one
        self.servers = [await loop.create_server(made, sock=each) for each in sockets or ()]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(ABORT_DELAY, self._abort_unsent)
        await super().shutdown(sockets)

    def _abort_unsent(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport.get_write_buffer_size():
                connection.transport.abort()


async def run_server(
    app: App, server: ServerSettings, ready: Callable[[ServerState], None], *, seen: bool, fd: int | None = None
) -> int:
    """Serves until a signal ends it; returns how many sessions were at work then.

    `ready` is called when requests are taken, and `seen` if somebody looks. `fd` is a socket that listens already.
    """
    # It is held until the process is gone: then everything is on the disk.
    tenancy = ServerLock.acquire(app.config.data)
    journal = start_server_log(app.config, app.runtime.redactor)
    keys = ServerTokenStore(app.config.data / TOKENS_FILE)
    entrance = bind_server(app, server, keys, seen=seen, fd=fd)
    state = ServerState(
        app=app,
        token_store=keys,
        hub=StreamHub(app.runtime),
        idempotency=IdempotencyStore(app.config.data / IDEMPOTENCY_FILE),
        workspace=Path.cwd(),
        address=entrance.address,
        live_config=ConfigReloader(app),
    )
    state.live_config.told = state.hub.report_config_change
    tenancy.record_server(_resident_record(state))
    api = create_api(state)
    own = listen_local(app.config.data / SOCKET_NAME)
    guard = RequestGuard(api, keys, server, entrance.address)
    servers = [
        _make_uvicorn(
            RequestLogger(OpenAIErrorMiddleware(guard), state.request_counters),
            make_protocol(server.connections, server.header_seconds),
            server,
            entrance,
        ),
        _make_uvicorn(
            RequestLogger(
                ForwardedRequestFilter(LocalSocketRpc(OpenAIErrorMiddleware(LocalOwnerGuard(api, server)), state)),
                state.request_counters,
            ),
            make_protocol(server.connections, server.header_seconds, own=True),
            server,
        ),
    ]
    _install_signal_handlers(state, servers)
    sockets = (entrance.listening, own)
    running = [asyncio.create_task(each.serve(sockets=[one])) for each, one in zip(servers, sockets, strict=True)]
    keeping = asyncio.create_task(_run_upkeep(guard, keys, entrance.certificate))
    try:
        await asyncio.wait(
            {asyncio.create_task(_wait_until_started(servers)), *running}, return_when=asyncio.FIRST_COMPLETED
        )
        tenancy.record_server(_resident_record(state, state.address.url))
        ready(state)
        return await _run_until_end(state, tenancy, servers, running)
    finally:
        keeping.cancel()
        _begin_shutdown(state, servers)
        logger.info("ends")
        if tenancy.is_in_place:
            (app.config.data / SOCKET_NAME).unlink(missing_ok=True)
        state.idempotency.close()
        keys.close()
        stop_server_log(journal)


async def _run_until_end(
    state: ServerState, tenancy: ServerLock, servers: list[UvicornServer], running: "list[asyncio.Task[None]]"
) -> int:
    notify_supervisor(state.app.config.environ, "READY=1")
    logger.info("serves at %s as process %d", state.address.url, os.getpid())
    async with run_background_tasks(state, tenancy) as life:
        await asyncio.wait({life, *running}, return_when=asyncio.FIRST_COMPLETED)
        _begin_shutdown(state, servers)
        left, _ = await asyncio.gather(wait_for_turns(state.app), asyncio.gather(*running))
        if life.done():
            life.result()
        return left


async def _run_upkeep(guard: RequestGuard, keys: ServerTokenStore, shown: ReloadingCertificate | None) -> None:
    """What has to be looked at now and then, as long as the server runs."""
    second = 0
    while True:
        await asyncio.sleep(SWEEP_INTERVAL)
        second += SWEEP_INTERVAL
        try:
            guard.live.cancel_revoked()
            if second % SAVE_INTERVAL == 0:
                keys.save_last_used()
            if shown and second % RENEW_INTERVAL == 0:
                await asyncio.to_thread(shown.renew)
        except SylphError as error:
            logger.warning("%s", error)


async def _wait_until_started(servers: list[UvicornServer]) -> None:
    while not all(server.started for server in servers):  # noqa: ASYNC110 - uvicorn tells it by a flag
        await asyncio.sleep(0.005)


def _make_uvicorn(
    app: ASGIApp, protocol: type[LimitedHttpProtocol], server: ServerSettings, entrance: ServerBinding | None = None
) -> UvicornServer:
    # It would write down addresses with all that is in them, also those that are refused for it.
    log = logging.getLogger("uvicorn.error")
    log.setLevel(logging.WARNING)
    log.addFilter(_is_worth_logging)
    shown = entrance.certificate if entrance else None
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - it is an ASGI application
        http=protocol,
        ws="websockets-sansio",
        ws_max_size=min(MAX_MESSAGE_BYTES, int(server.body_mb * 1_000_000)),
        ws_ping_interval=PING_INTERVAL,
        ws_ping_timeout=PING_INTERVAL,
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
        timeout_graceful_shutdown=REQUEST_GRACE,
    )
    quiet = UvicornServer(config)
    quiet.handshake_timeout = server.header_seconds
    return quiet


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """It takes a WebSocket that was refused with an answer for one that was forgotten; the recorder knows better."""
    return "without completing handshake" not in record.getMessage()


def _resident_record(state: ServerState, url: str = "") -> RunningServer:
    return RunningServer(pid=os.getpid(), version=__version__, started=state.started, url=url)


def _install_signal_handlers(state: ServerState, servers: list[UvicornServer]) -> None:
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, _on_signal, state, servers, number)


def _on_signal(state: ServerState, servers: list[UvicornServer], number: int) -> None:
    if state.closing.is_set():
        # Somebody insists. Nothing is lost: what was acknowledged is on the disk, and open turns go on later.
        os._exit(128 + number)
    _begin_shutdown(state, servers)


def _begin_shutdown(state: ServerState, servers: list[UvicornServer]) -> None:
    if not state.closing.is_set():
        notify_supervisor(state.app.config.environ, "STOPPING=1")
    state.closing.set()
    state.hub.end_all()
    for server in servers:
        server.should_exit = True
