"""The log of a session in pages, and what can be counted from it: states, usage, what the next prompt holds."""

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from msgspec import Meta, Struct

from sylph.core import facts
from sylph.core.errors import NotFound
from sylph.core.events import Event, encode_event
from sylph.core.messages import Usage
from sylph.engine.turn.context_usage import ContextUsage
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS
from sylph.interfaces.http.sessions.turn_control import CONTEXT_EXAMPLE
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.views.session_view import BudgetRow, session_budgets

routes = RouteGroup("log")
After = Annotated[int, Query(ge=0, le=2**53, description="Only facts after this number.")]
FactLimit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]


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


class ModelSpending(Struct, frozen=True, kw_only=True):
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
    models: tuple[ModelSpending, ...]
    budgets: tuple[BudgetRow, ...]


@routes.get("/sessions/{id}/facts", scope="read", gives=ListPage[FactView], errors=SESSION_ERRORS)
async def list_facts(
    server: ServerState,
    id: SessionId,
    after: After = 0,
    limit: FactLimit = 200,
    type: Annotated[list[str] | None, Query(max_length=50, description="Only facts of these types.")] = None,
) -> ListPage[FactView]:
    """Read the log of a session, the oldest fact first; `next` is the `after` of the following page."""
    runtime = server.app.runtime
    session = (await runtime.find_session(id)).id
    if type is None:
        found = await runtime.read_events(session, after=after, limit=limit + 1)
    else:
        kinds = [facts.FACTS_BY_WIRE[each] for each in dict.fromkeys(type) if each in facts.FACTS_BY_WIRE]
        found = runtime.log.read_events_of(session, kinds, after=after, limit=limit + 1)
    more = len(found) > limit
    return ListPage(
        items=[fact_view(event) for event in found[:limit]], next=str(found[limit - 1].seq) if more else None
    )


@routes.get("/sessions/{id}/facts/{seq}", scope="read", gives=FactView, errors=SESSION_ERRORS)
async def get_fact(server: ServerState, id: SessionId, seq: Annotated[int, Path(ge=1, le=2**53)]) -> FactView:
    """Read one fact."""
    session = (await server.app.runtime.find_session(id)).id
    for event in await server.app.runtime.read_events(session, after=seq - 1, limit=1):
        if event.seq == seq:
            return fact_view(event)
    raise NotFound(f"There is no fact {seq} in {session}.", next=["GET …/facts"])


@routes.get("/sessions/{id}/states", scope="read", gives=ListPage[StateRow], errors=SESSION_ERRORS)
async def list_states(
    server: ServerState, id: SessionId, after: After = 0, limit: FactLimit = 200
) -> ListPage[StateRow]:
    """List which states a session went through, the oldest first."""
    session = (await server.app.runtime.find_session(id)).id
    found = server.app.runtime.log.read_events_of(session, [facts.StateChanged], after=after, limit=limit + 1)
    rows = [
        StateRow(seq=event.seq, ts=event.ts, turn=event.turn, was=body.was, to=body.to, event=body.event)
        for event in found
        if isinstance(body := event.body, facts.StateChanged)
    ]
    return ListPage(items=rows[:limit], next=str(rows[limit - 1].seq) if len(rows) > limit else None)


@routes.get("/sessions/{id}/usage", scope="read", gives=UsageView, errors=SESSION_ERRORS)
async def get_usage(server: ServerState, id: SessionId) -> UsageView:
    """Tell what a session has used and cost, by model and role, and how its budgets stand."""
    summary = await server.app.runtime.find_session(id)
    return UsageView(
        session=summary.id,
        turns=summary.turns,
        usage=summary.usage,
        cost=summary.cost,
        guessed=summary.guessed,
        models=tuple(
            _spending_by_model(
                server.app.runtime.log.read_events_of(summary.id, SPENDING_FACTS, after=summary.forked_at)
            )
        ),
        budgets=await session_budgets(server.app, summary),
    )


@routes.get("/sessions/{id}/context", scope="read", gives=ContextUsage, errors=SESSION_ERRORS, answer=CONTEXT_EXAMPLE)
async def get_context(server: ServerState, id: SessionId) -> ContextUsage:
    """Tell what the next prompt would hold: tokens by part, and the model's window."""
    return await server.app.runtime.context_usage((await server.app.runtime.find_session(id)).id)


SPENDING_FACTS = (facts.ModelResponded, facts.ModelFailed)


def fact_view(event: Event) -> FactView:
    return msgspec.json.decode(encode_event(event), type=FactView)


def _spending_by_model(events: list[Event]) -> list[ModelSpending]:
    found: dict[tuple[str, str], ModelSpending] = {}
    for event in events:
        match event.body:
            case facts.ModelResponded(model=model, role=role, usage=used, cost=cost):
                failed = 0
            case facts.ModelFailed(model=model, role=role, usage=some, cost=cost):
                used, failed = some or Usage(), 1
            case _:
                continue
        old = found.get((model, role)) or ModelSpending(
            model=model, role=role, requests=0, failed=0, usage=Usage(), cost=None
        )
        found[model, role] = ModelSpending(
            model=model,
            role=role,
            requests=old.requests + 1,
            failed=old.failed + failed,
            usage=old.usage + used,
            cost=old.cost if cost is None else (old.cost or 0) + cost,
        )
    return list(found.values())
