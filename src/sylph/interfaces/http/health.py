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
from sylph.core.errors import StoreError
from sylph.interfaces.aside import aside
from sylph.interfaces.confinement import layer_of
from sylph.interfaces.http.house import House
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.route import Routes
from sylph.interfaces.standing import service
from sylph.wiring import store_of

routes = Routes("health")
# A store that needs longer does not answer.
SECONDS = 5.0


class Health(Struct, frozen=True, kw_only=True):
    status: str
    version: str


class Store(Struct, frozen=True, kw_only=True):
    ok: bool
    path: str
    bytes: int
    writable: bool
    trouble: str = ""


class Service(Struct, frozen=True, kw_only=True):
    name: str
    reachable: bool
    models: int
    trouble: str = ""


class Process(Struct, frozen=True, kw_only=True):
    """The server as the system sees it. `memory` and `peak` are bytes that are in use, and that were at most."""

    pid: int
    memory: int
    peak: int
    files: int
    seconds: float
    """Processor time."""


class Detail(Struct, frozen=True, kw_only=True):
    status: str
    """`ok`, `degraded` (something is wrong, and yet work can be done), `failing` or `ending`."""
    version: str
    uptime: int
    store: Store
    sandbox: str
    providers: list[Service]
    disk_free: int
    open_turns: int
    process: Process


@routes.get("/health/live", scope=None, gives=Health, answer=Health(status="ok", version="0.1.0"))
async def live() -> Health:
    """Whether the process answers."""
    return Health(status="ok", version=__version__)


@routes.get("/health/ready", scope=None, gives=Health, errors=(503,))
async def ready(house: House) -> Health:
    """Whether work can be taken: the store answers, and the server is not about to end."""
    if house.closing.is_set():
        raise Denied("The server is about to end.", kind="ending", next=["try again in a moment"])
    if trouble := await _answers(house):
        raise Denied(f"The store does not answer: {trouble}", kind="store_failed", next=["sylph doctor"])
    return Health(status="ok", version=__version__)


@routes.get("/health", scope="read", gives=Detail)
async def detail(house: House) -> Detail:
    """How the server is, part by part."""
    store = await _store(house)
    heard = [service(one) for one in await house.services.heard(house.app)]
    services = [
        Service(name=one["name"], reachable=one["reachable"], models=one["models"], trouble=one["trouble"])
        for one in heard
    ]
    layer = layer_of(house.app)
    return Detail(
        status=_status(house, store, services),
        version=__version__,
        uptime=int(time.time() - house.started),
        store=store,
        sandbox=layer.name if layer else "none",
        providers=services,
        disk_free=shutil.disk_usage(house.app.config.data).free,
        open_turns=sum(bool(one.open_turn) for one in await house.app.runtime.sessions()) if store.ok else 0,
        process=process(),
    )


def _status(house: House, store: Store, services: list[Service]) -> str:
    if house.closing.is_set():
        return "ending"
    if not store.ok:
        return "failing"
    return "ok" if store.writable and all(one.reachable for one in services) else "degraded"


async def _store(house: House) -> Store:
    path, trouble = store_of(house.app.config), await _answers(house)
    size = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
    writable = not house.app.runtime.log.read_only
    return Store(ok=not trouble, path=str(path), bytes=size, writable=writable, trouble=trouble)


async def _answers(house: House) -> str:
    """Why the store does not answer; empty where it does."""
    try:
        async with asyncio.timeout(SECONDS):
            await aside(store_of(house.app.config), lambda query: query("select count(*) from session", ()))
    except TimeoutError:
        return f"nothing came within {SECONDS:.0f} s"
    except StoreError as error:
        return str(error)
    return ""


def process() -> Process:
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    memory, files = peak, 0
    with suppress(OSError, ValueError, IndexError):  # Where the system does not tell, the peak is all that is known.
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return Process(
        pid=os.getpid(), memory=memory, peak=peak, files=files, seconds=round(used.ru_utime + used.ru_stime, 3)
    )
