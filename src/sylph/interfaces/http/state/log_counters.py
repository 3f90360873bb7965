"""What the log says has happened, counted: a fold that goes on where it stopped."""

import asyncio
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sylph.core.messages import Usage
from sylph.engine.budget.spending import LogQuery
from sylph.interfaces.reports.background_query import query_in_background

COUNTED_TYPES = (
    "session.deleted",
    "session.restored",
    "state.changed",
    "turn.ended",
    "asked",
    "answered",
    "model.responded",
    "model.failed",
    "tool.called",
    "tool.finished",
)
ROWS_QUERY = f"""
select seq, cast(type as text), cast(data as blob) from event
where session = ? and seq > ? and type in ({", ".join(f"'{type}'" for type in COUNTED_TYPES)}) order by seq
"""
# So many names of models are told apart: a name is free text, and a series for each would never end.
MAX_MODELS = 200
OTHER = "other"


class ModelCounters(Struct):
    """What one model was asked for in one role."""

    calls: int = 0
    failures: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int = 0
    seconds: float = 0.0


class SessionCounters(Struct):
    """How far one session was read, and how it stands there."""

    seq: int = 0
    state: str = "idle"
    deleted: bool = False
    asked: set[str] = field(default_factory=set[str])
    tools: dict[str, str] = field(default_factory=dict[str, str])


class _FactData(Struct):
    """The parts of facts that are counted."""

    id: str = ""
    to: str = ""
    outcome: str = ""
    model: str = ""
    role: str = "main"
    usage: Usage | None = None
    cost: int | None = None
    ms: int = 0
    call: str = ""
    name: str = ""
    ok: bool = False


class LogCounters(Struct):
    """The counts. Only the last part of the log is read each time."""

    sessions: dict[str, SessionCounters] = field(default_factory=dict[str, SessionCounters])
    turns: dict[str, int] = field(default_factory=dict[str, int])
    models: dict[tuple[str, str], ModelCounters] = field(default_factory=dict[tuple[str, str], ModelCounters])
    tools: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def update(self, store: Path) -> None:
        """Goes on to the end of the log."""
        async with self.reading:
            await query_in_background(store, self._read_new_facts)

    def _read_new_facts(self, query: LogQuery) -> None:
        ends: dict[str, int] = dict(query("select id, seq from session", ()))
        for gone in self.sessions.keys() - ends.keys():
            # Its counts stay: it did happen.
            del self.sessions[gone]
        for session, end in ends.items():
            place = self.sessions.setdefault(session, SessionCounters())
            if end <= place.seq:
                continue
            for seq, type, data in query(ROWS_QUERY, (session, place.seq)):
                self._count_fact(place, type, data)
                place.seq = seq
            place.seq = max(place.seq, end)

    def _count_fact(self, place: SessionCounters, type: str, data: bytes) -> None:
        try:
            body = msgspec.json.decode(data, type=_FactData)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        match type:
            case "session.deleted" | "session.restored":
                place.deleted = type == "session.deleted"
            case "state.changed":
                place.state = body.to
            case "turn.ended":
                self.turns[body.outcome] = self.turns.get(body.outcome, 0) + 1
                place.asked.clear()
                place.tools.clear()
            case "asked":
                place.asked.add(body.id)
            case "answered":
                place.asked.discard(body.id)
            case "model.responded":
                self._model_counters(body).calls += 1
            case "model.failed":
                self._model_counters(body).failures += 1
            case "tool.called":
                place.tools[body.call] = body.name
            case _:
                key = (place.tools.pop(body.call, OTHER), "ok" if body.ok else "failed")
                self.tools[key] = self.tools.get(key, 0) + 1

    def _model_counters(self, body: _FactData) -> ModelCounters:
        key = (body.model, body.role)
        if key not in self.models and len(self.models) >= MAX_MODELS:
            key = (OTHER, body.role)
        known = self.models.setdefault(key, ModelCounters())
        known.usage += body.usage or Usage()
        known.cost += body.cost or 0
        known.seconds += body.ms / 1000
        return known
