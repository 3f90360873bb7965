"""The life of the server beside its requests: what it takes up at the start, its pulse, and how its turns end."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sylph.app import App
from sylph.core.errors import StoreError, SylphError
from sylph.interfaces.http.house import House
from sylph.interfaces.http.systemd import notify, pulse
from sylph.interfaces.own.resident import Tenancy

logger = logging.getLogger("sylph.http")
# How often the server looks whether its folder is still there.
LOOK = 2.0
# How often it tidies up.
TIDY = 3600.0
# Turns that run when the server ends get so long to come to their own end.
MOMENT = 2.0


class Evicted(StoreError):
    """The folder of the data was removed or replaced under the server."""


@asynccontextmanager
async def lived(house: House, tenancy: Tenancy) -> AsyncGenerator["asyncio.Task[None]", None]:
    """While inside, the server lives; the task ends, with an error, when it cannot go on."""
    app = house.app
    beside = [asyncio.create_task(_watch(house, tenancy))]
    if app.config.settings.server.resume:
        beside.append(asyncio.create_task(_take_up(app)))
    try:
        yield beside[0]
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


async def _take_up(app: App) -> None:
    """Goes on with what was left open. Nobody is at the door: questions wait in the log for whoever comes."""
    try:
        async for resumed in app.runtime.resume_all():
            why = f": {resumed.trouble.message}" if resumed.trouble else ""
            logger.info("session %s was left open: %s%s", resumed.session, resumed.outcome or resumed.state, why)
    except SylphError as error:
        logger.warning("what was left open could not be taken up: %s", error)


async def _watch(house: House, tenancy: Tenancy) -> None:
    app, environ = house.app, house.app.config.environ
    beat, tidied = min(pulse(environ) or LOOK, LOOK), time.monotonic()
    while tenancy.stands:
        notify(environ, "WATCHDOG=1")
        house.live.look()
        if time.monotonic() - tidied > TIDY:
            tidied = time.monotonic()
            app.runtime.tidy()
        await asyncio.sleep(beat)
    raise Evicted(
        "The folder of the data was removed or replaced under the server, which therefore ends.",
        kind="store_gone",
        details={"path": app.config.data},
        next=["put it back", "sylph serve"],
    )


async def rest(app: App) -> int:
    """Gives turns a moment to end. What still runs then stays open in the log, and goes on at the next start."""
    left = await app.runtime.rest(MOMENT)
    if left:
        logger.info("%d left open, to be gone on with at the next start", left)
    return left
