"""What `session.erased` says of the facts that were erased: who stands for what is there now."""

from collections.abc import Iterable
from typing import Self

from msgspec import Struct, field

from sylph.core.events import Event
from sylph.core.facts.session import SessionErased
from sylph.engine.log.hash_chain import LogRecord, erasure_digest, is_erased


class ErasureDigests(Struct):
    """Erasing must not become a way of changing the past: an erased fact that nobody vouches for was tampered with."""

    facts: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    blobs: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> Self:
        vouchers = cls()
        for event in events:
            if isinstance(event.body, SessionErased):
                vouchers.add(event.body)
        return vouchers

    def add(self, fact: SessionErased) -> None:
        for seq, digest in fact.facts.items():
            self.facts.setdefault(seq, set()).add(digest)
        for name, digest in fact.blobs.items():
            self.blobs.setdefault(name, set()).add(digest)

    def covers_record(self, record: LogRecord) -> bool:
        return not is_erased(record) or erasure_digest(record.data) in self.facts.get(str(record.seq), ())

    def covers_output(self, name: str, data: bytes) -> bool:
        return erasure_digest(data) in self.blobs.get(name, ())
