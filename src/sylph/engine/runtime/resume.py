"""Going on with everything that was left open: a few sessions at a time, each told of when it is done."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from sylph.core import commands, facts
from sylph.core.errors import ErrorReport, LogConflict, SessionBusy, UserError
from sylph.core.events import Event
from sylph.core.facts.delivery import DeliveryFailed
from sylph.engine.folds.session_state import SessionState
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.resume_result import ResumeResult


class ResumableSessions(Protocol):
    """What is needed of the runtime."""

    @property
    def log(self) -> EventLog: ...
    async def send(self, session: str, command: commands.Command) -> str: ...
    async def wait_until_idle(self, session: str) -> None: ...
    async def find_session(self, prefix: str) -> SessionState: ...
    async def wait_for_deliveries(self, seconds: float | None = None, session: str = "") -> None: ...
    def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]: ...
    def failed_deliveries(self, session: str, *, after: int = 0) -> list[DeliveryFailed]: ...


def needs_resume(summary: SessionState) -> bool:
    """Whether somebody has to go on with it: a turn, a message that waits, or something to be delivered."""
    return bool(summary.open_turn or summary.queue or summary.outbox)


async def resume_all(
    sessions: ResumableSessions, left: Sequence[SessionState], at_once: int
) -> AsyncGenerator[ResumeResult, None]:
    slots = asyncio.Semaphore(at_once)
    tasks = [asyncio.create_task(_resume_session(sessions, one, slots)) for one in left]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _resume_session(sessions: ResumableSessions, left: SessionState, slots: asyncio.Semaphore) -> ResumeResult:
    id, before = left.id, left.seq
    async with slots:
        try:
            await sessions.send(id, commands.Continue())
        except (SessionBusy, LogConflict):
            return ResumeResult(session=id, state="elsewhere")
        except UserError as error:
            gone = error.trouble.kind == "nothing_open"
            return ResumeResult(session=id, state="elsewhere") if gone else _stuck_result(id, error.trouble)
        await _wait_until_rest(sessions, id, before)
    await sessions.wait_until_idle(id)
    await sessions.wait_for_deliveries(session=id)
    now = await sessions.find_session(id)
    if now.open_turn or now.queue:
        return _stuck_result(
            id, ErrorReport("still_open", "The turn could not be brought to its end; the log says more.")
        )
    ends = [fact for seq, _, fact in sessions.log.find_facts(id, facts.TurnEnded) if seq > before]
    end = ends[0] if ends else None
    return ResumeResult(
        session=id,
        state="ended" if end else "delivered",
        outcome=end.outcome if end else None,
        trouble=end.trouble if end else None,
        undelivered=len(now.outbox) + len(sessions.failed_deliveries(id, after=before)),
    )


async def _wait_until_rest(sessions: ResumableSessions, session: str, after: int) -> None:
    """Returns when the session is done, or waits for a person."""

    async def asks() -> None:
        async for event in sessions.watch(session, after=after):
            if isinstance(event.body, facts.Asked):
                return

    waits = [asyncio.create_task(asks()), asyncio.create_task(sessions.wait_until_idle(session))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _stuck_result(session: str, trouble: ErrorReport) -> ResumeResult:
    return ResumeResult(session=session, state="open", trouble=trouble)
