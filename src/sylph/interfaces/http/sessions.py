"""Sessions over HTTP: made, listed, found, read, changed, put aside, thrown away and brought back."""

from typing import Annotated

from fastapi import Header, Query, Request
from msgspec import Meta, Struct
from starlette.responses import Response

from sylph.core import commands
from sylph.core.archive import Speaker, Wanted
from sylph.core.errors import UserError
from sylph.engine.archive import LogArchive
from sylph.engine.cards import Card
from sylph.engine.states import State
from sylph.engine.summary import Summary
from sylph.interfaces.http.house import House
from sylph.interfaces.http.idempotency import IdempotencyKey, once
from sylph.interfaces.http.paging import Cursor, Limit, SessionId, number_of, page_of
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.route import Page, Routes, Versioned, unchanged
from sylph.interfaces.http.session_edit import BEGINS, LOOSER, SessionBody, SessionPatch, edits, new_session
from sylph.interfaces.http.session_view import ROW_EXAMPLE, VIEW_EXAMPLE, SessionRow, SessionView, row, tag, view
from sylph.interfaces.http.who import Who

routes = Routes("sessions")
HERE = (404, 409)
FOUND_AT_MOST = 1000
IfMatch = Annotated[str, Header(max_length=500, description="The ETag that the edit is based on.")]


class FoundView(Struct, frozen=True, kw_only=True):
    """A place where something was said: the fact `seq` of a session, and its words around it."""

    session: str
    title: str
    seq: int
    turn: str
    ts: int
    role: Speaker
    text: str


class ForkBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    at: Annotated[int, Meta(ge=1, le=2**53, description="Up to and with this fact; all of it if left out.")] | None = (
        None
    )
    title: Annotated[str, Meta(max_length=500, description="Another title for the copy.")] = ""


class Node(Struct, frozen=True, kw_only=True):
    """A session among its forks."""

    id: str
    title: str
    parent: str
    forked_at: int
    state: State
    turns: int
    created: int
    updated: int
    archived: bool
    deleted: bool


@routes.post(
    "/sessions",
    scope="chat",
    also=BEGINS,
    gives=SessionView,
    status=201,
    errors=(409, 502, 503),
    example=SessionBody(title="Mend the parser", mode="ask", budget=500_000),
    answer=VIEW_EXAMPLE,
)
async def create(
    house: House, who: Who, request: Request, body: SessionBody, idempotency_key: IdempotencyKey = ""
) -> Response:
    """Make a session."""

    async def make(id: str) -> SessionView:
        return await view(house.app, await house.app.runtime.find(await new_session(house, who, body, id)))

    return await once(request, who, idempotency_key, body, make)


@routes.get("/sessions", scope="read", gives=Page[SessionRow], answer=Page(items=[ROW_EXAMPLE]))
async def list_(  # noqa: PLR0913 - each is a parameter of the query
    house: House,
    limit: Limit = 50,
    cursor: Cursor = "",
    archived: Annotated[bool, Query(description="Those put aside instead.")] = False,  # noqa: FBT002 - a query
    deleted: Annotated[bool, Query(description="Those in the trash instead.")] = False,  # noqa: FBT002 - a query
    state: Annotated[State | None, Query(description="Only those in this state.")] = None,
    workspace: Annotated[str, Query(max_length=4096, description="Only those that work in this folder.")] = "",
    pinned: Annotated[bool | None, Query(description="Only those pinned, or those not.")] = None,
    label: Annotated[str, Query(max_length=60, description="Only those of this label.")] = "",
) -> Page[SessionRow]:
    """List sessions, the latest first; the order stands still while one goes through the pages."""

    def wanted(card: Card) -> bool:
        return (
            card.deleted == deleted
            and (deleted or card.archived == archived)
            and state in (None, card.state)
            and workspace in ("", card.workspace)
            and pinned in (None, card.pinned)
            and label in ("", card.label)
        )

    cards = house.app.runtime.cards
    found = page_of(cards, filter(wanted, await cards.all()), cursor, limit)
    return Page(items=[row(house.app, card) for card in found.items], next=found.next)


@routes.get(
    "/sessions/search",
    scope="read",
    gives=Page[FoundView],
    errors=HERE,
    answer=Page(
        items=[
            FoundView(
                session=ROW_EXAMPLE.id,
                title=ROW_EXAMPLE.title,
                seq=12,
                turn="t1",
                ts=1_762_000_030_000,
                role="assistant",
                text="The parser reads one line too few.",
            )
        ]
    ),
)
async def search(  # noqa: PLR0913 - each is a parameter of the query
    house: House,
    q: Annotated[
        str, Query(min_length=1, max_length=500, description='Every word, in any case; "a phrase" as it stands.')
    ],
    session: Annotated[str, Query(max_length=100, description="Only this session.")] = "",
    workspace: Annotated[str, Query(max_length=4096, description="Only sessions that work here.")] = "",
    role: Annotated[Speaker | None, Query(description="Only what came from there.")] = None,
    since: Annotated[int, Query(ge=0, le=2**53, description="Only since then, in ms since 1970.")] = 0,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[FoundView]:
    """Search what was said and done in all sessions, the newest place first."""
    app, skip = house.app, number_of(cursor)
    if skip >= FOUND_AT_MOST:
        raise UserError("There are no more pages.", kind="bad_cursor", next=["search for something rarer"])
    only = (await app.runtime.find(session)).id if session else ""
    wanted = Wanted(words=q, session=only, since=since, role=role, workspace=workspace, limit=skip + limit)
    findings = await LogArchive(app.runtime.log.path).search(wanted)
    titles = {card.id: card.title for card in await app.runtime.cards.all()}
    items = [
        FoundView(
            session=found.session,
            title=titles.get(found.session, ""),
            seq=found.seq,
            turn=found.turn,
            ts=found.ts,
            role=found.role,
            text=found.text,
        )
        for found in findings.found[skip:]
    ]
    return Page(items=items, next=str(skip + limit) if findings.more and skip + limit < FOUND_AT_MOST else None)


@routes.get("/sessions/{id}", scope="read", gives=SessionView, errors=HERE, answer=VIEW_EXAMPLE)
async def get(house: House, id: SessionId) -> Versioned[SessionView]:
    """Get a session: how it stands, what it waits for, what it cost."""
    return await shown(house, id)


@routes.patch(
    "/sessions/{id}",
    scope="chat",
    also=LOOSER,
    gives=SessionView,
    errors=(*HERE, 412, 502),
    example=SessionPatch(title="Mend the lexer", pinned=True),
    answer=VIEW_EXAMPLE,
)
async def patch(
    house: House, who: Who, id: SessionId, body: SessionPatch, if_match: IfMatch = ""
) -> Versioned[SessionView]:
    """Change a session. `If-Match` compares what can be edited: a turn that goes on meanwhile is no conflict."""
    before = await shown(house, id)
    unchanged(before.tag, if_match, part=_edited)
    summary = await living(house, before.value.id)
    for command in await edits(house.app, who, summary, body):
        await house.app.runtime.send(summary.id, command)
    return await shown(house, summary.id)


@routes.post("/sessions/{id}/archive", scope="chat", gives=SessionView, errors=HERE, answer=VIEW_EXAMPLE)
async def archive(house: House, id: SessionId) -> Versioned[SessionView]:
    """Put a session aside: lists leave it out, nothing else changes."""
    return await _archived(house, id, on=True)


@routes.post("/sessions/{id}/unarchive", scope="chat", gives=SessionView, errors=HERE, answer=VIEW_EXAMPLE)
async def unarchive(house: House, id: SessionId) -> Versioned[SessionView]:
    """Take a session up again."""
    return await _archived(house, id, on=False)


@routes.delete(
    "/sessions/{id}",
    scope="chat",
    also="`admin` with `purge=true`",
    gives=SessionView,
    other=(204,),
    errors=HERE,
    answer=VIEW_EXAMPLE,
)
async def delete(
    house: House,
    who: Who,
    id: SessionId,
    purge: Annotated[bool, Query(description="For good, with all it kept. Needs `admin`.")] = False,  # noqa: FBT002 - a query
) -> Versioned[SessionView] | None:
    """Put a session into the trash, whence `restore` brings it back; with `purge` nothing is left, nor answered."""
    runtime = house.app.runtime
    if purge and not who.may("admin"):
        raise Denied("Only an admin removes for good.", details={"scope": "admin"}, next=["leave out `purge`"])
    summary = await runtime.find(id)
    if purge:
        await runtime.purge(summary.id)
        return None
    if not summary.deleted:
        await runtime.send(summary.id, commands.Delete())
    return await shown(house, summary.id)


@routes.post("/sessions/{id}/restore", scope="chat", gives=SessionView, errors=HERE, answer=VIEW_EXAMPLE)
async def restore(house: House, id: SessionId) -> Versioned[SessionView]:
    """Bring a session back from the trash."""
    summary = await house.app.runtime.find(id)
    if not summary.deleted:
        raise UserError(f"{summary.id} is not in the trash.", kind="wrong_state", next=["GET /sessions?deleted=true"])
    await house.app.runtime.send(summary.id, commands.Restore())
    return await shown(house, summary.id)


@routes.post(
    "/sessions/{id}/fork",
    scope="chat",
    gives=SessionView,
    status=201,
    errors=HERE,
    example=ForkBody(at=12),
    answer=VIEW_EXAMPLE,
)
async def fork(
    house: House, who: Who, request: Request, id: SessionId, body: ForkBody, idempotency_key: IdempotencyKey = ""
) -> Response:
    """Copy a session, up to a fact of it, into a new one."""
    runtime = house.app.runtime
    parent = await runtime.find(id)

    async def make(name: str) -> SessionView:
        child = await runtime.fork(parent.id, at=body.at, id=name)
        if body.title and (await runtime.find(child)).title != body.title:
            await runtime.send(child, commands.Rename(title=body.title))
        return await view(house.app, await runtime.find(child))

    return await once(request, who, idempotency_key, body, make)


@routes.get("/sessions/{id}/tree", scope="read", gives=Page[Node], errors=HERE)
async def tree(house: House, id: SessionId) -> Page[Node]:
    """List a session with all forks of its origin, the oldest first; `parent` says which came from which."""
    summary = await house.app.runtime.find(id)
    root = summary.root or summary.id
    kin = sorted((card for card in await house.app.runtime.cards.all() if card.root == root), key=_age)
    return Page(items=[Node(**{name: getattr(card, name) for name in Node.__struct_fields__}) for card in kin])


async def shown(house: House, id: str) -> Versioned[SessionView]:
    seen = await view(house.app, await house.app.runtime.find(id))
    return Versioned(seen, tag(seen))


async def living(house: House, id: str) -> Summary:
    """A session that is not in the trash."""
    summary = await house.app.runtime.find(id)
    if summary.deleted:
        raise UserError(
            "The session is in the trash.", kind="deleted", next=[f"POST /api/v1/sessions/{summary.id}/restore"]
        )
    return summary


async def _archived(house: House, id: str, *, on: bool) -> Versioned[SessionView]:
    summary = await living(house, id)
    if summary.archived != on:
        await house.app.runtime.send(summary.id, commands.Archive(on=on))
    return await shown(house, summary.id)


def _age(card: Card) -> tuple[int, str]:
    return card.created, card.id


def _edited(tag: str) -> str:
    """The part of a tag that tells what can be edited."""
    return tag.rpartition("-")[2]
