"""Messages to people: each was recorded first, and arrived or was given up."""

from collections.abc import Iterator

from msgspec import Struct

from sylph.core import facts
from sylph.core.deliveries import DeliveryAttempted, DeliveryConfirmed, DeliveryFailed, DeliveryRecorded
from sylph.core.errors import Trouble
from sylph.core.events import Event
from sylph.core.text import count, first_line
from sylph.engine.diagnosis.finding import Case, Finding


class _Parcel(Struct):
    event: Event
    body: DeliveryRecorded
    at: int = 0
    attempts: int = 0
    trouble: Trouble | None = None
    ended: bool = False

    @property
    def named(self) -> str:
        return f"{first_line(self.body.title, 60)!r} by {self.body.channel}"

    @property
    def seqs(self) -> tuple[int, ...]:
        return (self.event.seq, self.at) if self.at else (self.event.seq,)

    @property
    def why(self) -> str:
        return f": {first_line(self.trouble.message, 200).rstrip('.')}" if self.trouble else ""


class _Parcels:
    def __init__(self) -> None:
        self.known: dict[str, _Parcel] = {}
        self.lost: list[_Parcel] = []
        self.strays: list[Event] = []

    def see(self, event: Event) -> None:
        match event.body:
            case DeliveryRecorded(id=id) as body:
                self.known[id] = _Parcel(event, body)
            case DeliveryAttempted(id=id) | DeliveryConfirmed(id=id) | DeliveryFailed(id=id) as body:
                if parcel := self.known.get(id):
                    self._move(parcel, event.seq, body)
                else:
                    self.strays.append(event)
            case facts.SessionForked() | facts.SessionDeleted():
                # A copy sends nothing that the original sends; what is in the trash is not sent.
                for parcel in self.known.values():
                    parcel.ended = True
            case _:
                pass

    def _move(self, parcel: _Parcel, seq: int, body: DeliveryAttempted | DeliveryConfirmed | DeliveryFailed) -> None:
        parcel.attempts = max(parcel.attempts, body.attempt)
        match body:
            case DeliveryConfirmed():
                parcel.ended = True
            case DeliveryFailed(trouble=trouble, retry_ms=retry_ms):
                parcel.trouble, parcel.at = trouble, seq
                if retry_ms is None and not parcel.ended:
                    parcel.ended = True
                    self.lost.append(parcel)
            case DeliveryAttempted():
                parcel.at = seq


def deliveries(case: Case) -> Iterator[Finding]:
    seen = _Parcels()
    for event in case.events:
        seen.see(event)
    if seen.strays:
        seqs = tuple(event.seq for event in seen.strays)
        yield Finding("deliveries", "fail", "Something was delivered that was never recorded.", seqs, (case.facts,))
    for parcel in seen.lost:
        yield Finding("deliveries", "warn", f"{parcel.named} was given up{parcel.why}.", parcel.seqs, (case.show,))
    for parcel in (each for each in seen.known.values() if not each.ended):
        tried = f"tried {count(parcel.attempts, 'time')}" if parcel.attempts else "not tried yet"
        state = "note" if case.live.pid else "warn"
        message = f"{parcel.named} was not delivered yet, {tried}{parcel.why}."
        yield Finding("deliveries", state, message, parcel.seqs, (case.resume,))
