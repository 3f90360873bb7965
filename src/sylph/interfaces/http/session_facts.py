"""The log of a session in pages, and what can be counted from it: states, usage, what the next prompt holds."""

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from msgspec import Meta, Struct

from sylph.core import facts
from sylph.core.errors import NotFound
from sylph.core.events import Event, line_of
from sylph.core.messages import Usage
from sylph.engine.context import Context
from sylph.interfaces.http.acts import CONTEXT
from sylph.interfaces.http.house import House
from sylph.interfaces.http.paging import SessionId
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.session_view import BudgetRow, budgets_of
from sylph.interfaces.http.sessions import HERE

routes = Routes("log")
After = Annotated[int, Query(ge=0, le=2**53, description="Only facts after this number.")]
Many = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]


class FactView(Struct, frozen=True, kw_only=True):
    """A fact as every door tells it. The reference of events says what its `data` holds."""

    v: int
    session: str
    seq: int
    turn: str
    ts: int
    type: str
    actor: str
    cause: int
    hash: str
    data: Any


class StateRow(Struct, frozen=True, kw_only=True):
    """The session went from one state to another."""

    seq: int
    ts: int
    turn: str
    was: str
    to: str
    event: str


class Spent(Struct, frozen=True, kw_only=True):
    """What a model was used for in a role. Money is in micro-dollars; null where no price is known."""

    model: str
    role: str
    requests: int
    failed: int
    usage: Usage
    cost: int | None


class UsageView(Struct, frozen=True, kw_only=True):
    session: str
    turns: int
    usage: Usage
    cost: int | None
    guessed: Annotated[int, Meta(description="How much of the cost is an upper bound.")]
    models: tuple[Spent, ...]
    budgets: tuple[BudgetRow, ...]


@routes.get("/sessions/{id}/facts", scope="read", gives=Page[FactView], errors=HERE)
async def list_(
    house: House,
    id: SessionId,
    after: After = 0,
    limit: Many = 200,
    type: Annotated[list[str] | None, Query(max_length=50, description="Only facts of these types.")] = None,
) -> Page[FactView]:
    """Read the log of a session, the oldest fact first; `next` is the `after` of the following page."""
    runtime = house.app.runtime
    session = (await runtime.find(id)).id
    if type is None:
        found = await runtime.read(session, after=after, limit=limit + 1)
    else:
        kinds = [facts.BY_WIRE[each] for each in dict.fromkeys(type) if each in facts.BY_WIRE]
        found = runtime.log.of(session, kinds, after=after, limit=limit + 1)
    more = len(found) > limit
    return Page(items=[fact(event) for event in found[:limit]], next=str(found[limit - 1].seq) if more else None)


@routes.get("/sessions/{id}/facts/{seq}", scope="read", gives=FactView, errors=HERE)
async def get(house: House, id: SessionId, seq: Annotated[int, Path(ge=1, le=2**53)]) -> FactView:
    """Read one fact."""
    session = (await house.app.runtime.find(id)).id
    for event in await house.app.runtime.read(session, after=seq - 1, limit=1):
        if event.seq == seq:
            return fact(event)
    raise NotFound(f"There is no fact {seq} in {session}.", next=["GET …/facts"])


@routes.get("/sessions/{id}/states", scope="read", gives=Page[StateRow], errors=HERE)
async def states(house: House, id: SessionId, after: After = 0, limit: Many = 200) -> Page[StateRow]:
    """List which states a session went through, the oldest first."""
    session = (await house.app.runtime.find(id)).id
    found = house.app.runtime.log.of(session, [facts.StateChanged], after=after, limit=limit + 1)
    rows = [
        StateRow(seq=event.seq, ts=event.ts, turn=event.turn, was=body.was, to=body.to, event=body.event)
        for event in found
        if isinstance(body := event.body, facts.StateChanged)
    ]
    return Page(items=rows[:limit], next=str(rows[limit - 1].seq) if len(rows) > limit else None)


@routes.get("/sessions/{id}/usage", scope="read", gives=UsageView, errors=HERE)
async def usage(house: House, id: SessionId) -> UsageView:
    """Tell what a session has used and cost, by model and role, and how its budgets stand."""
    summary = await house.app.runtime.find(id)
    return UsageView(
        session=summary.id,
        turns=summary.turns,
        usage=summary.usage,
        cost=summary.cost,
        guessed=summary.guessed,
        models=tuple(_spent(house.app.runtime.log.of(summary.id, SPENDING, after=summary.forked_at))),
        budgets=await budgets_of(house.app, summary),
    )


@routes.get("/sessions/{id}/context", scope="read", gives=Context, errors=HERE, answer=CONTEXT)
async def context(house: House, id: SessionId) -> Context:
    """Tell what the next prompt would hold: tokens by part, and the model's window."""
    return await house.app.runtime.context((await house.app.runtime.find(id)).id)


SPENDING = (facts.ModelResponded, facts.ModelFailed)


def fact(event: Event) -> FactView:
    return msgspec.json.decode(line_of(event), type=FactView)


def _spent(events: list[Event]) -> list[Spent]:
    found: dict[tuple[str, str], Spent] = {}
    for event in events:
        match event.body:
            case facts.ModelResponded(model=model, role=role, usage=used, cost=cost):
                failed = 0
            case facts.ModelFailed(model=model, role=role, usage=some, cost=cost):
                used, failed = some or Usage(), 1
            case _:
                continue
        old = found.get((model, role)) or Spent(model=model, role=role, requests=0, failed=0, usage=Usage(), cost=None)
        found[model, role] = Spent(
            model=model,
            role=role,
            requests=old.requests + 1,
            failed=old.failed + failed,
            usage=old.usage + used,
            cost=old.cost if cost is None else (old.cost or 0) + cost,
        )
    return list(found.values())
