"""Deliveries as they were: on the ways there were, with what became of them then."""

from collections.abc import Sequence
from itertools import islice

from sylph.core.facts.delivery import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryError,
    DeliveryFailed,
    DeliveryRecorded,
    NotificationOccasion,
)
from sylph.replay.playback import Playback

# What is recorded together stands together: as many ways to a person as anybody can have, and more.
LOOKAHEAD = 40


def is_send_attempt(body: object, id: str) -> bool:
    """Whether the outbox is about to try a delivery, or to give up what was cut off each time."""
    return isinstance(body, DeliveryAttempted | DeliveryFailed) and body.id == id


class RecordedCourier:
    """Knows the ways there were; what it takes along arrives if it did then."""

    seconds: float | None = None

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    def channels(self, why: NotificationOccasion, name: str) -> Sequence[str]:
        recorded = [event.body for event in islice(self._playback.upcoming, LOOKAHEAD)]
        found = [body for body in recorded if isinstance(body, DeliveryRecorded) and body.why == why]
        return [body.channel for body in found if body.id == f"{name}.{body.channel}"]

    async def send(self, session: str, parcel: DeliveryRecorded) -> None:  # noqa: ARG002 - it has been sent
        event = await self._playback.wait_for_delivery(lambda event: _is_arrival(event.body, parcel.id))
        if isinstance(event.body, DeliveryFailed):
            pause = event.body.retry_ms
            after = None if pause is None else pause / 1000
            raise DeliveryError(event.body.trouble, final=pause is None, after=after)


def _is_arrival(body: object, id: str) -> bool:
    return isinstance(body, DeliveryConfirmed | DeliveryFailed) and body.id == id
