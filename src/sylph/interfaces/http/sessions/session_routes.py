"""Sessions over HTTP: made, listed, found, read, changed, put aside, thrown away and brought back."""

from typing import Annotated

from fastapi import Header, Query, Request
from msgspec import Meta, Struct
from starlette.responses import Response

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.core.history_search import HistoryQuery, HistoryRole
from sylph.engine.folds.session_list import SessionListItem
from sylph.engine.folds.session_state import SessionState
from sylph.engine.folds.state_machine import ActivityState
from sylph.engine.log.search import LogSearch
from sylph.interfaces.http.kit.idempotency import IdempotencyKey, respond_once
from sylph.interfaces.http.kit.paging import Cursor, Limit, SessionId, page_of_sessions, parse_number_cursor
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import ListPage, RouteGroup, Versioned, check_if_match
from sylph.interfaces.http.sessions.session_edit import (
    LOOSER_SCOPE,
    NEW_SESSION_SCOPE,
    SessionBody,
    SessionPatch,
    edit_commands,
    make_session,
)
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.views.session_view import (
    ROW_EXAMPLE,
    VIEW_EXAMPLE,
    SessionRow,
    SessionView,
    build_session_view,
    session_etag,
    session_row,
)

routes = RouteGroup("sessions")
SESSION_ERRORS = (404, 409)
MAX_HITS = 1000
IfMatch = Annotated[str, Header(max_length=500, description="The ETag that the edit is based on.")]


class SessionSearchHit(Struct, frozen=True, kw_only=True):
    """A place where something was said: the fact `seq` of a session, and its words around it."""

    session: str
    title: str
    seq: int
    turn: str
    ts: int
    role: HistoryRole
    text: str


class ForkBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    at: Annotated[int, Meta(ge=1, le=2**53, description="Up to and with this fact; all of it if left out.")] | None = (
        None
    )
    title: Annotated[str, Meta(max_length=500, description="Another title for the copy.")] = ""


class SessionTreeNode(Struct, frozen=True, kw_only=True):
    """A session among its forks."""

    id: str
    title: str
    parent: str
    forked_at: int
    state: ActivityState
    turns: int
    created: int
    updated: int
    archived: bool
    deleted: bool


@routes.post(
    "/sessions",
    scope="chat",
    also=NEW_SESSION_SCOPE,
    gives=SessionView,
    status=201,
    errors=(409, 502, 503),
    example=SessionBody(title="Mend the parser", mode="ask", budget=500_000),
    answer=VIEW_EXAMPLE,
)
async def create_session(
    server: ServerState, principal: Principal, request: Request, body: SessionBody, idempotency_key: IdempotencyKey = ""
) -> Response:
    """Make a session."""

    async def make(id: str) -> SessionView:
        return await build_session_view(
            server.app, await server.app.runtime.find_session(await make_session(server, principal, body, id))
        )

    return await respond_once(request, principal, idempotency_key, body, make)


@routes.get("/sessions", scope="read", gives=ListPage[SessionRow], answer=ListPage(items=[ROW_EXAMPLE]))
async def list_sessions(  # noqa: PLR0913 - each is a parameter of the query
    server: ServerState,
    limit: Limit = 50,
    cursor: Cursor = "",
    archived: Annotated[bool, Query(description="Those put aside instead.")] = False,  # noqa: FBT002 - a query
    deleted: Annotated[bool, Query(description="Those in the trash instead.")] = False,  # noqa: FBT002 - a query
    state: Annotated[ActivityState | None, Query(description="Only those in this state.")] = None,
    workspace: Annotated[str, Query(max_length=4096, description="Only those that work in this folder.")] = "",
    pinned: Annotated[bool | None, Query(description="Only those pinned, or those not.")] = None,
    label: Annotated[str, Query(max_length=60, description="Only those of this label.")] = "",
) -> ListPage[SessionRow]:
    """List sessions, the latest first; the order stands still while one goes through the pages."""

    def wanted(card: SessionListItem) -> bool:
        return (
            card.deleted == deleted
            and (deleted or card.archived == archived)
            and state in (None, card.state)
            and workspace in ("", card.workspace)
            and pinned in (None, card.pinned)
            and label in ("", card.label)
        )

    cards = server.app.runtime.cards
    found = page_of_sessions(cards, filter(wanted, await cards.load_items()), cursor, limit)
    return ListPage(items=[session_row(server.app, card) for card in found.items], next=found.next)


@routes.get(
    "/sessions/search",
    scope="read",
    gives=ListPage[SessionSearchHit],
    errors=SESSION_ERRORS,
    answer=ListPage(
        items=[
            SessionSearchHit(
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
async def search_sessions(  # noqa: PLR0913 - each is a parameter of the query
    server: ServerState,
    q: Annotated[
        str, Query(min_length=1, max_length=500, description='Every word, in any case; "a phrase" as it stands.')
    ],
    session: Annotated[str, Query(max_length=100, description="Only this session.")] = "",
    workspace: Annotated[str, Query(max_length=4096, description="Only sessions that work here.")] = "",
    role: Annotated[HistoryRole | None, Query(description="Only what came from there.")] = None,
    since: Annotated[int, Query(ge=0, le=2**53, description="Only since then, in ms since 1970.")] = 0,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> ListPage[SessionSearchHit]:
    """Search what was said and done in all sessions, the newest place first."""
    app, skip = server.app, parse_number_cursor(cursor)
    if skip >= MAX_HITS:
        raise UserError("There are no more pages.", kind="bad_cursor", next=["search for something rarer"])
    only = (await app.runtime.find_session(session)).id if session else ""
    wanted = HistoryQuery(words=q, session=only, since=since, role=role, workspace=workspace, limit=skip + limit)
    findings = await LogSearch(app.runtime.log.path).search(wanted)
    titles = {card.id: card.title for card in await app.runtime.cards.load_items()}
    items = [
        SessionSearchHit(
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
    return ListPage(items=items, next=str(skip + limit) if findings.more and skip + limit < MAX_HITS else None)


@routes.get("/sessions/{id}", scope="read", gives=SessionView, errors=SESSION_ERRORS, answer=VIEW_EXAMPLE)
async def get_session(server: ServerState, id: SessionId) -> Versioned[SessionView]:
    """Get a session: how it stands, what it waits for, what it cost."""
    return await versioned_session(server, id)


@routes.patch(
    "/sessions/{id}",
    scope="chat",
    also=LOOSER_SCOPE,
    gives=SessionView,
    errors=(*SESSION_ERRORS, 412, 502),
    example=SessionPatch(title="Mend the lexer", pinned=True),
    answer=VIEW_EXAMPLE,
)
async def patch_session(
    server: ServerState, principal: Principal, id: SessionId, body: SessionPatch, if_match: IfMatch = ""
) -> Versioned[SessionView]:
    """Change a session. `If-Match` compares what can be edited: a turn that goes on meanwhile is no conflict."""
    before = await versioned_session(server, id)
    check_if_match(before.tag, if_match, part=_editable_tag)
    summary = await find_active_session(server, before.value.id)
    for command in await edit_commands(server.app, principal, summary, body):
        await server.app.runtime.send(summary.id, command)
    return await versioned_session(server, summary.id)


@routes.post("/sessions/{id}/archive", scope="chat", gives=SessionView, errors=SESSION_ERRORS, answer=VIEW_EXAMPLE)
async def archive_session(server: ServerState, id: SessionId) -> Versioned[SessionView]:
    """Put a session aside: lists leave it out, nothing else changes."""
    return await _set_archived(server, id, on=True)


@routes.post("/sessions/{id}/unarchive", scope="chat", gives=SessionView, errors=SESSION_ERRORS, answer=VIEW_EXAMPLE)
async def unarchive_session(server: ServerState, id: SessionId) -> Versioned[SessionView]:
    """Take a session up again."""
    return await _set_archived(server, id, on=False)


@routes.delete(
    "/sessions/{id}",
    scope="chat",
    also="`admin` with `purge=true`",
    gives=SessionView,
    other=(204,),
    errors=SESSION_ERRORS,
    answer=VIEW_EXAMPLE,
)
async def delete_session(
    server: ServerState,
    principal: Principal,
    id: SessionId,
    purge: Annotated[bool, Query(description="For good, with all it kept. Needs `admin`.")] = False,  # noqa: FBT002 - a query
) -> Versioned[SessionView] | None:
    """Put a session into the trash, whence `restore` brings it back; with `purge` nothing is left, nor answered."""
    runtime = server.app.runtime
    if purge and not principal.has_scope("admin"):
        raise AccessDenied("Only an admin removes for good.", details={"scope": "admin"}, next=["leave out `purge`"])
    summary = await runtime.find_session(id)
    if purge:
        await runtime.purge_session(summary.id)
        return None
    if not summary.deleted:
        await runtime.send(summary.id, commands.Delete())
    return await versioned_session(server, summary.id)


@routes.post("/sessions/{id}/restore", scope="chat", gives=SessionView, errors=SESSION_ERRORS, answer=VIEW_EXAMPLE)
async def restore_session(server: ServerState, id: SessionId) -> Versioned[SessionView]:
    """Bring a session back from the trash."""
    summary = await server.app.runtime.find_session(id)
    if not summary.deleted:
        raise UserError(f"{summary.id} is not in the trash.", kind="wrong_state", next=["GET /sessions?deleted=true"])
    await server.app.runtime.send(summary.id, commands.Restore())
    return await versioned_session(server, summary.id)


@routes.post(
    "/sessions/{id}/fork",
    scope="chat",
    gives=SessionView,
    status=201,
    errors=SESSION_ERRORS,
    example=ForkBody(at=12),
    answer=VIEW_EXAMPLE,
)
async def fork_session(
    server: ServerState,
    principal: Principal,
    request: Request,
    id: SessionId,
    body: ForkBody,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Copy a session, up to a fact of it, into a new one."""
    runtime = server.app.runtime
    parent = await runtime.find_session(id)

    async def make(name: str) -> SessionView:
        child = await runtime.fork_session(parent.id, at=body.at, id=name)
        if body.title and (await runtime.find_session(child)).title != body.title:
            await runtime.send(child, commands.Rename(title=body.title))
        return await build_session_view(server.app, await runtime.find_session(child))

    return await respond_once(request, principal, idempotency_key, body, make)


@routes.get("/sessions/{id}/tree", scope="read", gives=ListPage[SessionTreeNode], errors=SESSION_ERRORS)
async def get_session_tree(server: ServerState, id: SessionId) -> ListPage[SessionTreeNode]:
    """List a session with all forks of its origin, the oldest first; `parent` says which came from which."""
    summary = await server.app.runtime.find_session(id)
    root = summary.root or summary.id
    kin = sorted((card for card in await server.app.runtime.cards.load_items() if card.root == root), key=_age_key)
    return ListPage(
        items=[
            SessionTreeNode(**{name: getattr(card, name) for name in SessionTreeNode.__struct_fields__}) for card in kin
        ]
    )


async def versioned_session(server: ServerState, id: str) -> Versioned[SessionView]:
    seen = await build_session_view(server.app, await server.app.runtime.find_session(id))
    return Versioned(seen, session_etag(seen))


async def find_active_session(server: ServerState, id: str) -> SessionState:
    """A session that is not in the trash."""
    summary = await server.app.runtime.find_session(id)
    if summary.deleted:
        raise UserError(
            "The session is in the trash.", kind="deleted", next=[f"POST /api/v1/sessions/{summary.id}/restore"]
        )
    return summary


async def _set_archived(server: ServerState, id: str, *, on: bool) -> Versioned[SessionView]:
    summary = await find_active_session(server, id)
    if summary.archived != on:
        await server.app.runtime.send(summary.id, commands.Archive(on=on))
    return await versioned_session(server, summary.id)


def _age_key(card: SessionListItem) -> tuple[int, str]:
    return card.created, card.id


def _editable_tag(tag: str) -> str:
    """The part of a tag that tells what can be edited."""
    return tag.rpartition("-")[2]
