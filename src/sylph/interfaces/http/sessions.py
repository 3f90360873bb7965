"""Sessions over HTTP: made, listed, read."""

from pathlib import Path
from typing import Annotated

from fastapi import Query
from msgspec import Meta, Struct

from sylph.core.facts import Mode
from sylph.engine.runtime import NewSession
from sylph.engine.states import State
from sylph.engine.summary import Summary
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes, Versioned

routes = Routes("sessions")
Limit = Annotated[int, Query(ge=1, le=200, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=200, description="Where to go on: the `next` of the page before.")]


class SessionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a new session is to be; what is left out is as configured."""

    workspace: Annotated[str, Meta(description="A folder of the server's machine; the server's own if empty.")] = ""
    model: Annotated[str, Meta(description="`provider/model`, or `@role`; the best there is if empty.")] = ""
    mode: Mode | None = None
    title: Annotated[str, Meta(max_length=500)] = ""


class SessionView(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    workspace: str
    model: str
    mode: Mode
    state: State
    created: int
    updated: int
    seq: int
    turns: int


EXAMPLE = SessionView(
    id="01K9YXG6Q4T0",
    title="Mend the parser",
    workspace="/home/ann/project",
    model="openai/gpt-5",
    mode="ask",
    state="idle",
    created=1_762_000_000_000,
    updated=1_762_000_060_000,
    seq=42,
    turns=2,
)


@routes.post("/sessions", scope="chat", gives=SessionView, status=201, example=SessionBody(title="Mend the parser"))
async def create(house: House, body: SessionBody) -> SessionView:
    """Make a session."""
    app = house.app
    new = NewSession(
        workspace=Path(body.workspace) if body.workspace else house.workspace,
        model=await app.choose(body.model),
        mode=body.mode or app.config.settings.mode,
        title=body.title,
        sandbox=app.sandboxed(),
    )
    return view(await app.runtime.find(await app.runtime.create(new)))


@routes.get("/sessions", scope="read", gives=Page[SessionView], answer=Page(items=[EXAMPLE]))
async def list_(house: House, limit: Limit = 50, cursor: Cursor = "") -> Page[SessionView]:
    """List sessions, the latest first."""
    found = [one for one in await house.app.runtime.sessions() if not cursor or f"{one.updated}.{one.id}" < cursor]
    more = len(found) > limit
    last = found[limit - 1] if more else None
    return Page(items=[view(one) for one in found[:limit]], next=f"{last.updated}.{last.id}" if last else None)


@routes.get("/sessions/{id}", scope="read", gives=SessionView, errors=(404, 409), answer=EXAMPLE)
async def get(house: House, id: str) -> Versioned[SessionView]:
    """Get a session by its id, the beginning of its id, or `last`."""
    found = await house.app.runtime.find(id)
    return Versioned(view(found), str(found.seq))


def view(summary: Summary) -> SessionView:
    return SessionView(
        id=summary.id,
        title=summary.title,
        workspace=summary.workspace,
        model=summary.model,
        mode=summary.mode,
        state=summary.state,
        created=summary.created,
        updated=summary.updated,
        seq=summary.seq,
        turns=summary.turns,
    )
