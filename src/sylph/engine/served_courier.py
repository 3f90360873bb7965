"""Deliveries as they were: on the ways there were, with what became of them then."""

from collections.abc import Sequence
from itertools import islice

from sylph.core.deliveries import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRecorded,
    Occasion,
    Undelivered,
)
from sylph.engine.tape import Tape

# What is recorded together stands together: as many ways to a person as anybody can have, and more.
NEAR = 40


def sends(body: object, id: str) -> bool:
    """Whether the outbox is about to try a delivery, or to give up what was cut off each time."""
    return isinstance(body, DeliveryAttempted | DeliveryFailed) and body.id == id


class ServedCourier:
    """Knows the ways there were; what it takes along arrives if it did then."""

    seconds: float | None = None

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def channels(self, why: Occasion, name: str) -> Sequence[str]:
        recorded = [event.body for event in islice(self._tape.ahead, NEAR)]
        found = [body for body in recorded if isinstance(body, DeliveryRecorded) and body.why == why]
        return [body.channel for body in found if body.id == f"{name}.{body.channel}"]

    async def send(self, session: str, parcel: DeliveryRecorded) -> None:  # noqa: ARG002 - it has been sent
        event = await self._tape.delivery(lambda event: _arrives(event.body, parcel.id))
        if isinstance(event.body, DeliveryFailed):
            pause = event.body.retry_ms
            after = None if pause is None else pause / 1000
            raise Undelivered(event.body.trouble, final=pause is None, after=after)


def _arrives(body: object, id: str) -> bool:
    return isinstance(body, DeliveryConfirmed | DeliveryFailed) and body.id == id
