"""Messages to people: each was recorded first, and arrived or was given up."""

from collections.abc import Iterator

from msgspec import Struct

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Event
from sylph.core.facts.delivery import DeliveryAttempted, DeliveryConfirmed, DeliveryFailed, DeliveryRecorded
from sylph.core.text.formatting import count_noun, first_line
from sylph.diagnosis.finding import DiagnosisCase, DiagnosisFinding


class _TrackedDelivery(Struct):
    event: Event
    body: DeliveryRecorded
    at: int = 0
    attempts: int = 0
    trouble: ErrorReport | None = None
    ended: bool = False

    @property
    def label(self) -> str:
        return f"{first_line(self.body.title, 60)!r} by {self.body.channel}"

    @property
    def seqs(self) -> tuple[int, ...]:
        return (self.event.seq, self.at) if self.at else (self.event.seq,)

    @property
    def reason(self) -> str:
        return f": {first_line(self.trouble.message, 200).rstrip('.')}" if self.trouble else ""


class _DeliveryTracker:
    def __init__(self) -> None:
        self.known: dict[str, _TrackedDelivery] = {}
        self.lost: list[_TrackedDelivery] = []
        self.strays: list[Event] = []

    def track_event(self, event: Event) -> None:
        match event.body:
            case DeliveryRecorded(id=id) as body:
                self.known[id] = _TrackedDelivery(event, body)
            case DeliveryAttempted(id=id) | DeliveryConfirmed(id=id) | DeliveryFailed(id=id) as body:
                if parcel := self.known.get(id):
                    self._update_delivery(parcel, event.seq, body)
                else:
                    self.strays.append(event)
            case facts.SessionForked() | facts.SessionDeleted():
                # A copy sends nothing that the original sends; what is in the trash is not sent.
                for parcel in self.known.values():
                    parcel.ended = True
            case _:
                pass

    def _update_delivery(
        self, parcel: _TrackedDelivery, seq: int, body: DeliveryAttempted | DeliveryConfirmed | DeliveryFailed
    ) -> None:
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


def check_deliveries(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    seen = _DeliveryTracker()
    for event in case.events:
        seen.track_event(event)
    if seen.strays:
        seqs = tuple(event.seq for event in seen.strays)
        yield DiagnosisFinding(
            "deliveries", "fail", "Something was delivered that was never recorded.", seqs, (case.events_command,)
        )
    for parcel in seen.lost:
        yield DiagnosisFinding(
            "deliveries", "warn", f"{parcel.label} was given up{parcel.reason}.", parcel.seqs, (case.show_command,)
        )
    for parcel in (each for each in seen.known.values() if not each.ended):
        tried = f"tried {count_noun(parcel.attempts, 'time')}" if parcel.attempts else "not tried yet"
        state = "note" if case.live.pid else "warn"
        message = f"{parcel.label} was not delivered yet, {tried}{parcel.reason}."
        yield DiagnosisFinding("deliveries", state, message, parcel.seqs, (case.resume_command,))
