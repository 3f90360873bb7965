"""What the log says was used: every answer, and every attempt that was counted at the most it can have been."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from sylph.core import facts
from sylph.core.facts.budget import BudgetAmount
from sylph.core.messages import Usage

LogQuery = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

SPENDING_TYPES = (
    "session.created",
    "session.forked",
    "model.responded",
    "model.failed",
    "tool.called",
    "tool.finished",
)
_IN = ", ".join(f"'{type}'" for type in SPENDING_TYPES)
# The day of an answer is the day on which the model was asked: that is when the money was put aside.
ROWS = f"""
select event.session, event.seq, event.turn, coalesce(asked.ts, event.ts), cast(event.type as text),
       cast(event.data as blob), event.cause
from event left join event as asked on asked.session = event.session and asked.seq = event.cause and asked.seq > 0
where event.session = ? and event.seq > ? and event.type in ({_IN}) order by event.seq
"""


class _Created(Struct):
    label: str = ""


class _Forked(Struct):
    root: str = ""


class _Failed(Struct):
    model: str = ""
    role: str = "main"
    usage: Usage | None = None
    cost: int | None = None
    turn: str = ""


class _Responded(Struct):
    model: str = ""
    role: str = "main"
    usage: Usage = Usage()
    cost: int | None = None
    ms: int = 0


class _Tool(Struct):
    name: str = ""
    ms: int = 0


class SpendingEntry(NamedTuple):
    """One answer, or one attempt without one, or (without a model) the time a tool took."""

    session: str
    seq: int
    turn: str
    ts: int
    model: str = ""
    role: str = ""
    usage: Usage = Usage()
    cost: int | None = None
    ms: int = 0
    sure: bool = True
    """False where nobody knows what it was: it is counted at the most it can have been."""

    @property
    def amount(self) -> BudgetAmount:
        tokens = self.usage.input + self.usage.output
        return BudgetAmount(self.cost or 0, tokens, 1 if self.model else 0, self.ms)


class SessionSpending(Struct):
    """What one session has used since a point in its log, whose fork it is, and which label it carries."""

    root: str
    label: str = ""
    spends: list[SpendingEntry] = []
    tools: dict[int, list[str]] = {}
    """The tools that an answer called, by its number."""


def read_spending(query: LogQuery, session: str, after: int = 0, *, root: str = "", label: str = "") -> SessionSpending:
    """What a session has used after a fact. What a fork has in common with its parent was paid for there."""
    part = SessionSpending(root or session, label, [], {})
    last = 0
    for id, seq, turn, ts, type, data, _ in query(ROWS, (session, after)):
        try:
            match type:
                case "session.created":
                    part.label = msgspec.json.decode(data, type=_Created).label
                case "session.forked":
                    part.root, part.spends, part.tools = msgspec.json.decode(data, type=_Forked).root, [], {}
                case "tool.called":
                    part.tools.setdefault(last, []).append(msgspec.json.decode(data, type=_Tool).name)
                case "tool.finished":
                    part.spends += _tool_entries(id, seq, turn, ts, data)
                case _:
                    part.spends += _model_entries(id, seq, turn, ts, type, data)
                    last = seq
        except (msgspec.DecodeError, UnicodeDecodeError):
            # A damaged record costs that record.
            continue
    return part


def _tool_entries(session: str, seq: int, turn: str, ts: int, data: bytes) -> Iterator[SpendingEntry]:
    took = msgspec.json.decode(data, type=_Tool).ms
    if took:
        yield SpendingEntry(session, seq, turn, ts, ms=took)


def _model_entries(session: str, seq: int, turn: str, ts: int, type: str, data: bytes) -> Iterator[SpendingEntry]:
    if type == facts.ModelResponded.wire:
        said = msgspec.json.decode(data, type=_Responded)
        yield SpendingEntry(session, seq, turn, ts, said.model, said.role, said.usage, said.cost, said.ms)
        return
    failed = msgspec.json.decode(data, type=_Failed)
    if failed.usage is not None:
        asked = failed.turn or turn
        yield SpendingEntry(session, seq, asked, ts, failed.model, failed.role, failed.usage, failed.cost, sure=False)


def local_date(ms: int) -> str:
    """The date, where this machine is."""
    now = time.localtime(ms / 1000)
    return f"{now.tm_year:04}-{now.tm_mon:02}-{now.tm_mday:02}"
