"""Whether the server lives, whether it can work, and how it is."""

import asyncio
import os
import resource
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from sylph import __version__
from sylph.compose.engine import log_path
from sylph.core.errors import StoreError
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.reports.background_query import query_in_background
from sylph.interfaces.reports.status_report import service_status
from sylph.interfaces.text.sandbox_notice import sandbox_layer

routes = RouteGroup("health")
# A store that needs longer does not answer.
STORE_TIMEOUT = 5.0


class HealthView(Struct, frozen=True, kw_only=True):
    status: str
    version: str


class StoreHealth(Struct, frozen=True, kw_only=True):
    ok: bool
    path: str
    bytes: int
    writable: bool
    trouble: str = ""


class ServiceHealth(Struct, frozen=True, kw_only=True):
    name: str
    reachable: bool
    models: int
    trouble: str = ""


class ProcessHealth(Struct, frozen=True, kw_only=True):
    """The server as the system sees it. `memory` and `peak` are bytes that are in use, and that were at most."""

    pid: int
    memory: int
    peak: int
    files: int
    seconds: float
    """Processor time."""


class HealthDetail(Struct, frozen=True, kw_only=True):
    status: str
    """`ok`, `degraded` (something is wrong, and yet work can be done), `failing` or `ending`."""
    version: str
    uptime: int
    store: StoreHealth
    sandbox: str
    providers: list[ServiceHealth]
    disk_free: int
    open_turns: int
    process: ProcessHealth


@routes.get("/health/live", scope=None, gives=HealthView, answer=HealthView(status="ok", version="0.1.0"))
async def get_liveness() -> HealthView:
    """Whether the process answers."""
    return HealthView(status="ok", version=__version__)


@routes.get("/health/ready", scope=None, gives=HealthView, errors=(503,))
async def get_readiness(server: ServerState) -> HealthView:
    """Whether work can be taken: the store answers, and the server is not about to end."""
    if server.closing.is_set():
        raise AccessDenied("The server is about to end.", kind="ending", next=["try again in a moment"])
    if trouble := await _store_error(server):
        raise AccessDenied(f"The store does not answer: {trouble}", kind="store_failed", next=["sylph doctor"])
    return HealthView(status="ok", version=__version__)


@routes.get("/health", scope="read", gives=HealthDetail)
async def get_health(server: ServerState) -> HealthDetail:
    """How the server is, part by part."""
    store = await _check_store(server)
    heard = [service_status(one) for one in await server.provider_status.get_providers(server.app)]
    services = [
        ServiceHealth(name=one["name"], reachable=one["reachable"], models=one["models"], trouble=one["trouble"])
        for one in heard
    ]
    layer = sandbox_layer(server.app)
    return HealthDetail(
        status=_overall_status(server, store, services),
        version=__version__,
        uptime=int(time.time() - server.started),
        store=store,
        sandbox=layer.name if layer else "none",
        providers=services,
        disk_free=shutil.disk_usage(server.app.config.data).free,
        open_turns=sum(bool(one.open_turn) for one in await server.app.runtime.list_sessions()) if store.ok else 0,
        process=measure_process(),
    )


def _overall_status(server: ServerState, store: StoreHealth, services: list[ServiceHealth]) -> str:
    if server.closing.is_set():
        return "ending"
    if not store.ok:
        return "failing"
    return "ok" if store.writable and all(one.reachable for one in services) else "degraded"


async def _check_store(server: ServerState) -> StoreHealth:
    path, trouble = log_path(server.app.config), await _store_error(server)
    size = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
    writable = not server.app.runtime.log.read_only
    return StoreHealth(ok=not trouble, path=str(path), bytes=size, writable=writable, trouble=trouble)


async def _store_error(server: ServerState) -> str:
    """Why the store does not answer; empty where it does."""
    try:
        async with asyncio.timeout(STORE_TIMEOUT):
            await query_in_background(
                log_path(server.app.config), lambda query: query("select count(*) from session", ())
            )
    except TimeoutError:
        return f"nothing came within {STORE_TIMEOUT:.0f} s"
    except StoreError as error:
        return str(error)
    return ""


def measure_process() -> ProcessHealth:
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    memory, files = peak, 0
    with suppress(OSError, ValueError, IndexError):  # Where the system does not tell, the peak is all that is known.
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return ProcessHealth(
        pid=os.getpid(), memory=memory, peak=peak, files=files, seconds=round(used.ru_utime + used.ru_stime, 3)
    )
