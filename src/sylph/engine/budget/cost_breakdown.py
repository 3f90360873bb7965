"""What was spent, seen from one side: by day, session, model, role, label, faculty or tool. A fold of the log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from sylph.engine.budget import spending
from sylph.engine.budget.ledger_store import Reservation
from sylph.engine.budget.spending import LogQuery, SessionSpending, SpendingEntry, local_date

CostGrouping = Literal["day", "session", "model", "role", "label", "faculty", "tool"]
# An answer that calls no tool is talk.
NO_TOOL = "talk"
UNKNOWN = "unknown"
UNLABELLED = "no label"


class CostGroup(msgspec.Struct):
    """One row. `guessed` is what of the cost nobody knows: it is the most it can have been. What `unpriced` calls cost
    is not in it, for their prices are not known."""

    key: str
    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: int = 0
    guessed: int = 0
    unknown: int = 0
    unpriced: int = 0


def list_costs(query: LogQuery, by: CostGrouping, since: int, faculties: Mapping[str, str]) -> list[CostGroup]:
    """The rows in order: days as they came, everything else the dearest first. `faculties` has the plugin of a tool."""
    rows: dict[str, CostGroup] = {}
    for part, spend in _read_entries(query, since):
        _add_entry(rows, spend, _group_keys(by, spend, part, faculties))
    found = list(rows.values())
    if by == "day":
        return sorted(found, key=lambda row: row.key)
    return sorted(found, key=lambda row: (-row.cost, -row.input - row.output, row.key))


def daily_costs(query: LogQuery, since: int) -> dict[tuple[str, str], CostGroup]:
    """By day and model, the days as they came."""
    rows: dict[str, CostGroup] = {}
    places: dict[str, tuple[str, str]] = {}
    for _, spend in _read_entries(query, since):
        key = f"{local_date(spend.ts)} {spend.model}"
        places[key] = (local_date(spend.ts), spend.model)
        _add_entry(rows, spend, [key])
    return {places[key]: rows[key] for key in sorted(rows)}


def unknown_costs(holds: Sequence[Reservation], since: int) -> list[CostGroup]:
    """A row of its own for calls whose end nobody knows, and the log does not tell of yet: the most they can be."""
    row = CostGroup(UNKNOWN)
    for hold in holds:
        if hold.ts >= since:
            more = CostGroup(
                UNKNOWN, calls=1, input=hold.input, output=hold.output, cost=hold.money or 0, guessed=hold.money or 0,
                unknown=1, unpriced=int(hold.money is None),
            )  # fmt: skip
            row = replace(sum_costs([row, more]), key=UNKNOWN)
    return [row] if row.calls else []


def sum_costs(rows: list[CostGroup]) -> CostGroup:
    whole = CostGroup("total")
    for row in rows:
        for name in CostGroup.__struct_fields__[1:]:
            setattr(whole, name, getattr(whole, name) + getattr(row, name))
    return whole


def _read_entries(query: LogQuery, since: int) -> Iterator[tuple[SessionSpending, SpendingEntry]]:
    for (session,) in query("select id from session", ()):
        if not query("select 1 from event where session = ? and ts >= ? limit 1", (session, since)):
            continue
        part = spending.read_spending(query, session)
        for spend in part.spends:
            if spend.model and spend.ts >= since:
                yield part, spend


def _group_keys(  # noqa: PLR0911 - a table
    by: CostGrouping, spend: SpendingEntry, part: SessionSpending, faculties: Mapping[str, str]
) -> list[str]:
    match by:
        case "day":
            return [local_date(spend.ts)]
        case "session":
            return [spend.session]
        case "model":
            return [spend.model]
        case "role":
            return [spend.role]
        case "label":
            return [part.label or UNLABELLED]
        case _:
            tools = part.tools.get(spend.seq, [])
            if spend.role != "main" or not tools:
                return [NO_TOOL if spend.role == "main" else spend.role]
            return tools if by == "tool" else [faculties.get(tool, "unknown tool") for tool in tools]


def _add_entry(rows: dict[str, CostGroup], spend: SpendingEntry, keys: list[str]) -> None:
    """An answer that called several tools is shared out among them, to the last token; as a call it counts once."""
    distinct = list(dict.fromkeys(keys))
    for key in distinct:
        row = rows.setdefault(key, CostGroup(key))
        share = _share_out(spend, keys.count(key), len(keys), first=key == distinct[0])
        row.calls += key == distinct[0]
        row.input, row.output, row.cached = row.input + share[0], row.output + share[1], row.cached + share[2]
        row.cost += share[3]
        row.guessed += 0 if spend.sure else share[3]
        row.unknown += key == distinct[0] and not spend.sure
        row.unpriced += key == distinct[0] and spend.cost is None


def _share_out(spend: SpendingEntry, mine: int, all: int, *, first: bool) -> list[int]:
    whole = (spend.usage.input, spend.usage.output, spend.usage.cached, spend.cost or 0)
    return [value // all * mine + (value % all if first else 0) for value in whole]
