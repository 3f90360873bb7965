"""The life of the server beside its requests: what it takes up at the start, its pulse, and how its turns end."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sylph.app import App
from sylph.core.errors import StoreError, SylphError
from sylph.interfaces.http.server.systemd import notify_supervisor, watchdog_interval
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.local_socket.server_lock import ServerLock

logger = logging.getLogger("sylph.http")
# How often the server looks whether its folder is still there.
CHECK_INTERVAL = 2.0
# How often it tidies up.
TIDY_INTERVAL = 3600.0
# Turns that run when the server ends get so long to come to their own end.
TURN_GRACE = 2.0


class DataFolderGone(StoreError):
    """The folder of the data was removed or replaced under the server."""


@asynccontextmanager
async def run_background_tasks(server: ServerState, tenancy: ServerLock) -> AsyncGenerator["asyncio.Task[None]", None]:
    """While inside, the server lives; the task ends, with an error, when it cannot go on."""
    app = server.app
    beside = [asyncio.create_task(_watch_data_folder(server, tenancy))]
    if app.config.settings.server.resume:
        beside.append(asyncio.create_task(_resume_open_turns(app)))
    try:
        yield beside[0]
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


async def _resume_open_turns(app: App) -> None:
    """Goes on with what was left open. Nobody is at the door: questions wait in the log for whoever comes."""
    try:
        async for resumed in app.runtime.resume_all():
            why = f": {resumed.trouble.message}" if resumed.trouble else ""
            logger.info("session %s was left open: %s%s", resumed.session, resumed.outcome or resumed.state, why)
    except SylphError as error:
        logger.warning("what was left open could not be taken up: %s", error)


async def _watch_data_folder(server: ServerState, tenancy: ServerLock) -> None:
    app, environ = server.app, server.app.config.environ
    beat, tidied = min(watchdog_interval(environ) or CHECK_INTERVAL, CHECK_INTERVAL), time.monotonic()
    while tenancy.is_in_place:
        notify_supervisor(environ, "WATCHDOG=1")
        server.live_config.check_files()
        if time.monotonic() - tidied > TIDY_INTERVAL:
            tidied = time.monotonic()
            app.runtime.run_upkeep()
        await asyncio.sleep(beat)
    raise DataFolderGone(
        "The folder of the data was removed or replaced under the server, which therefore ends.",
        kind="store_gone",
        details={"path": app.config.data},
        next=["put it back", "sylph serve"],
    )


async def wait_for_turns(app: App) -> int:
    """Gives turns a moment to end. What still runs then stays open in the log, and goes on at the next start."""
    left = await app.runtime.wait_for_turns(TURN_GRACE)
    if left:
        logger.info("%d left open, to be gone on with at the next start", left)
    return left
