"""What is to be delivered to people, sent in the background: recorded, then sent, then confirmed or given up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sylph.core.errors import ErrorReport, SylphError
from sylph.core.events import Fact
from sylph.core.facts.delivery import Courier, DeliveryAttempted, DeliveryConfirmed, DeliveryError, DeliveryFailed
from sylph.engine.folds.session_state import PendingDelivery
from sylph.engine.turn.turn_context import TurnContext

# Seconds between one try and the next; after the last of them a delivery is given up.
PAUSES = (1.0, 5.0, 30.0, 120.0, 600.0)
TRIES = len(PAUSES) + 1
LONGEST_PAUSE = 3600.0

logger = logging.getLogger(__name__)

WriteFact = Callable[[Fact], Awaitable[None]]


class DeliveryOutbox:
    """The deliveries of one session: on each channel one after the other, the channels side by side.

    What is to be sent is in the log, and only there; so whoever opens the session next goes on with it.
    """

    def __init__(self, context: TurnContext, courier: Courier, write: WriteFact, rests: Callable[[], None]) -> None:
        self._context, self._courier, self._write, self._told = context, courier, write, rests
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._active = set[str]()
        self._rests = asyncio.Event()
        self._stopped = False

    @property
    def sending(self) -> bool:
        """Whether something is on its way at this moment."""
        return bool(self._active)

    @property
    def working(self) -> bool:
        """Whether something is on its way, or waits for its next try."""
        return any(not worker.done() for worker in self._workers.values())

    def start_workers(self) -> None:
        """Sees to it that somebody is at work on whatever waits."""
        for waiting in self._context.summary.outbox.values() if not self._stopped else ():
            channel = waiting.parcel.channel
            known = self._workers.get(channel)
            if known is None or known.done():
                self._workers[channel] = asyncio.create_task(self._deliver_channel(channel))
                self._mark_active(channel)

    async def wait_until_idle(self) -> None:
        """Returns when nothing is on its way: what then still waits has been tried, and waits for its next try."""
        while self._active:
            await self._rests.wait()

    async def stop(self) -> None:
        """Sends no more. What is on its way is left open in the log, to be sent again."""
        self.cancel()
        if self._workers:
            await asyncio.wait(self._workers.values())

    def cancel(self) -> None:
        """The same, without waiting."""
        self._stopped = True
        for worker in self._workers.values():
            worker.cancel()

    async def _deliver_channel(self, channel: str) -> None:
        # Whoever opens a session tries at once, however long the last one meant to wait.
        patient = False
        try:
            while waiting := self._next_delivery(channel):
                pause = self._pause_before(waiting) if patient else 0.0
                if pause:
                    self._mark_idle(channel)
                await self._context.clock.sleep(pause, waiting.parcel.id)
                self._mark_active(channel)
                patient = True
                await self._attempt_delivery(waiting)
        except SylphError as error:
            # The session is in other hands, or its log cannot be written: it is sent by whoever opens it next.
            logger.info("deliveries of %s stop: %s", self._context.id, error)
        finally:
            self._mark_idle(channel)

    def _next_delivery(self, channel: str) -> PendingDelivery | None:
        outbox = self._context.summary.outbox.values()
        return next((waiting for waiting in outbox if waiting.parcel.channel == channel), None)

    def _pause_before(self, waiting: PendingDelivery) -> float:
        """Until the next try. A clock that was set back does not make it longer."""
        return min(max(waiting.at - self._context.now, 0), waiting.pause) / 1000

    async def _attempt_delivery(self, waiting: PendingDelivery) -> None:
        id, attempt = waiting.parcel.id, waiting.attempts + 1
        if attempt > TRIES:
            # Each time it was sent the process died, so nobody knows whether it arrived.
            await self._write(DeliveryFailed(id=id, attempt=waiting.attempts, trouble=INTERRUPTED))
            return
        await self._write(DeliveryAttempted(id=id, attempt=attempt))
        try:
            await self._send_parcel(waiting)
        except DeliveryError as error:
            failed = DeliveryFailed(
                id=id, attempt=attempt, trouble=error.trouble, retry_ms=_retry_delay_ms(error, attempt)
            )
            await self._write(failed)
        else:
            await self._write(DeliveryConfirmed(id=id, attempt=attempt))

    async def _send_parcel(self, waiting: PendingDelivery) -> None:
        """Whatever goes wrong comes out as Undelivered, so that it is written down and tried again."""
        seconds = self._courier.seconds
        try:
            async with asyncio.timeout(seconds):
                await self._courier.send(self._context.id, waiting.parcel)
        except SylphError:
            raise
        except TimeoutError as error:
            raise DeliveryError(ErrorReport("timeout", f"It was not taken within {seconds or 0:g} s.")) from error
        except Exception as error:
            logger.exception("delivery %s of %s failed", waiting.parcel.id, self._context.id)
            raise DeliveryError(ErrorReport("bug", f"{type(error).__name__}: {error}")) from error

    def _mark_active(self, channel: str) -> None:
        self._active.add(channel)
        self._rests.clear()

    def _mark_idle(self, channel: str) -> None:
        self._active.discard(channel)
        if not self._active:
            self._rests.set()
            self._told()


INTERRUPTED = ErrorReport(
    "interrupted",
    "Sylph was stopped each time it was being sent; whether it arrived is not known.",
    next=("Look whether it is there.",),
)


def _retry_delay_ms(error: DeliveryError, attempt: int) -> int | None:
    """Milliseconds until the next try; None where there is none."""
    if error.final or attempt >= TRIES:
        return None
    return round(1000 * min(PAUSES[attempt - 1] if error.after is None else error.after, LONGEST_PAUSE))
