"""Messages to people: recorded first, then sent, then confirmed; and the seam to whoever takes them there."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

import msgspec

from sylph.core.errors import ErrorReport, SylphError
from sylph.core.events import Fact

Urgency = Literal["low", "normal", "high"]
NotificationOccasion = Literal["notify", "asked", "ended", "budget"]
"""What a person is told of: the model wants to say something, the turn waits for an answer, the turn is over, a budget
is nearly or wholly used up."""

DOOR_CHANNEL = "door"
"""The way that is always there: whoever watches the session sees it. Nothing has to be sent."""


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is to be told."""

    title: str
    text: str = ""
    urgency: Urgency = "normal"


class DeliveryRecorded(Fact, frozen=True, kw_only=True):
    """A message to a person is to be delivered on one `channel`. It is kept until it is confirmed or given up.

    Whoever gets it twice, because Sylph died before it was confirmed, knows it by the session's id and its own.
    """

    wire: ClassVar[str] = "delivery.recorded"
    durable: ClassVar[bool] = True
    id: str
    channel: str
    title: str
    text: str = ""
    urgency: Urgency = "normal"
    why: NotificationOccasion = "notify"
    call: str = ""


def delivery_key(session: str, parcel: DeliveryRecorded) -> str:
    """What a delivery is known by for good, to whoever gets it: the same each time it is tried."""
    return f"{session}.{parcel.id}"


class DeliveryAttempted(Fact, frozen=True, kw_only=True):
    """A delivery is on its way from here on: on the disk before it can arrive."""

    wire: ClassVar[str] = "delivery.attempted"
    durable: ClassVar[bool] = True
    id: str
    attempt: int


class DeliveryConfirmed(Fact, frozen=True, kw_only=True):
    """A delivery has arrived. What only has to be shown was not sent, and has no `attempt`."""

    wire: ClassVar[str] = "delivery.confirmed"
    id: str
    attempt: int = 0


class DeliveryFailed(Fact, frozen=True, kw_only=True):
    """A delivery did not arrive. `retry_ms` says when the next try comes; without it, it is given up."""

    wire: ClassVar[str] = "delivery.failed"
    id: str
    attempt: int
    trouble: ErrorReport
    retry_ms: int | None = None


DELIVERY_FACTS: tuple[type[Fact], ...] = (DeliveryRecorded, DeliveryAttempted, DeliveryConfirmed, DeliveryFailed)


class DeliveryError(SylphError):
    """For the outbox: it did not arrive. `final` where trying again is of no use, `after` where they said when."""

    kind = "undelivered"

    def __init__(self, trouble: ErrorReport, *, final: bool = False, after: float | None = None) -> None:
        super().__init__(trouble.message)
        self.trouble, self.final, self.after = trouble, final, after


class Courier(Protocol):
    """Knows the ways to a person, and takes messages along them."""

    @property
    def seconds(self) -> float | None:
        """How long it may be on its way with one."""
        ...

    def channels(self, why: NotificationOccasion, name: str) -> Sequence[str]:
        """On which ways a person is told of this; none where nobody wants to know. `name` is what it is about."""
        ...

    async def send(self, session: str, parcel: DeliveryRecorded) -> None:
        """Returns when it has arrived; raises Undelivered where it has not."""
        ...


class NoCourier:
    """A courier without any way out of the house."""

    seconds: float | None = None

    def channels(self, why: NotificationOccasion, name: str) -> Sequence[str]:  # noqa: ARG002 - whatever it is
        return (DOOR_CHANNEL,) if why == "notify" else ()

    async def send(self, session: str, parcel: DeliveryRecorded) -> None:  # noqa: ARG002 - the same
        raise DeliveryError(unknown_channel_report(parcel.channel), final=True)


def unknown_channel_report(channel: str) -> ErrorReport:
    return ErrorReport(
        "no_channel",
        f"There is no way {channel!r} to deliver anything.",
        next=("`sylph config` shows what is set under `notify`.",),
    )
