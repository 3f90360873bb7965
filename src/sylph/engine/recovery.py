"""Going on with everything that was left open: a few sessions at a time, each told of when it is done."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from sylph.core import commands, facts
from sylph.core.deliveries import DeliveryFailed
from sylph.core.errors import Conflict, SessionBusy, Trouble, UserError
from sylph.core.events import Event
from sylph.engine.log import Log
from sylph.engine.resumed import Resumed
from sylph.engine.summary import Summary


class Sessions(Protocol):
    """What is needed of the runtime."""

    @property
    def log(self) -> Log: ...
    async def send(self, session: str, command: commands.Command) -> str: ...
    async def settled(self, session: str) -> None: ...
    async def find(self, prefix: str) -> Summary: ...
    async def tried(self, seconds: float | None = None, session: str = "") -> None: ...
    def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]: ...
    def given_up(self, session: str, *, after: int = 0) -> list[DeliveryFailed]: ...


def left_open(summary: Summary) -> bool:
    """Whether somebody has to go on with it: a turn, a message that waits, or something to be delivered."""
    return bool(summary.open_turn or summary.queue or summary.outbox)


async def resume_all(sessions: Sessions, left: Sequence[Summary], at_once: int) -> AsyncGenerator[Resumed, None]:
    slots = asyncio.Semaphore(at_once)
    tasks = [asyncio.create_task(_resume(sessions, one, slots)) for one in left]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _resume(sessions: Sessions, left: Summary, slots: asyncio.Semaphore) -> Resumed:
    id, before = left.id, left.seq
    async with slots:
        try:
            await sessions.send(id, commands.Continue())
        except (SessionBusy, Conflict):
            return Resumed(session=id, state="elsewhere")
        except UserError as error:
            gone = error.trouble.kind == "nothing_open"
            return Resumed(session=id, state="elsewhere") if gone else _stuck(id, error.trouble)
        await _rests(sessions, id, before)
    await sessions.settled(id)
    await sessions.tried(session=id)
    now = await sessions.find(id)
    if now.open_turn or now.queue:
        return _stuck(id, Trouble("still_open", "The turn could not be brought to its end; the log says more."))
    ends = [fact for seq, _, fact in sessions.log.find(id, facts.TurnEnded) if seq > before]
    end = ends[0] if ends else None
    return Resumed(
        session=id,
        state="ended" if end else "delivered",
        outcome=end.outcome if end else None,
        trouble=end.trouble if end else None,
        undelivered=len(now.outbox) + len(sessions.given_up(id, after=before)),
    )


async def _rests(sessions: Sessions, session: str, after: int) -> None:
    """Returns when the session is done, or waits for a person."""

    async def asks() -> None:
        async for event in sessions.watch(session, after=after):
            if isinstance(event.body, facts.Asked):
                return

    waits = [asyncio.create_task(asks()), asyncio.create_task(sessions.settled(session))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _stuck(session: str, trouble: Trouble) -> Resumed:
    return Resumed(session=session, state="open", trouble=trouble)
