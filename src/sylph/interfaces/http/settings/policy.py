"""The policy over HTTP: rules, the way to a decision, and what was allowed for a session."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import Query
from msgspec import Meta, Struct

from sylph.compose.engine import build_rule_store
from sylph.config.rules_file import PROJECT_RULES_FILE, FileRuleStore
from sylph.core.clock import SystemClock
from sylph.core.commands import RevokeGrant
from sylph.core.errors import NotFound, ToolError, UserError
from sylph.core.messages import ToolCall
from sylph.core.permission.rule_text import describe_rule
from sylph.core.permission.rules import unexpired_rules
from sylph.core.permission.types import Mode, PermissionRule
from sylph.core.text.suggestion import suggest_word
from sylph.engine.calls.explain import explain_decision
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.actions.file_versions import content_tag
from sylph.interfaces.http.files.workspace_access import FOREIGN_FOLDER, resolve_workspace
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import ListPage, RouteGroup, Versioned, check_if_match
from sylph.interfaces.http.settings.config import IfMatch
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.reports.rule_view import CallDecisionView, list_rules, make_decision_view, require_sensible_rule

routes = RouteGroup("policy")
Folder = Annotated[str, Query(max_length=4000, description="With the rules of the project in this folder.")]


class RuleView(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """One rule. Only remembered ones have a number, and are changed here."""

    source: str
    number: int | None
    rule: PermissionRule
    told: Annotated[str, Meta(description="The rule in words.")]
    heeded: bool = True
    """False for a project's `allow`: a project can only make things stricter."""


class PolicyView(Struct, frozen=True, kw_only=True):
    """The rules in their order: the first that fits decides."""

    rules: list[RuleView]
    project: str
    trouble: str = ""


class RuleOrderBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every number of a remembered rule once, in the new order."""

    order: Annotated[list[int], Meta(max_length=10_000)]


class ExplainBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tool: Annotated[str, Meta(max_length=200)]
    arguments: dict[str, Any] = {}
    mode: Mode | None = None
    session: Annotated[str, Meta(max_length=200, description="As in this session, with what it allowed.")] = ""


class GrantView(Struct, frozen=True, kw_only=True):
    """Something that was allowed for the rest of a session."""

    session: str
    number: int
    rule: PermissionRule
    told: Annotated[str, Meta(description="The rule in words.")]


@routes.get("/policy", scope="read", also=FOREIGN_FOLDER, gives=PolicyView, errors=(422,))
async def get_policy(server: ServerState, principal: Principal, workspace: Folder = "") -> Versioned[PolicyView]:
    """The rules that apply, in their order."""
    return _policy_view(
        server, await resolve_workspace(server, principal, workspace) if workspace else server.workspace
    )


@routes.post(
    "/policy/rules",
    scope="admin",
    gives=PolicyView,
    status=201,
    errors=(412,),
    example=PermissionRule(decision="deny", command="git push *"),
)
async def add_rule(server: ServerState, body: PermissionRule, if_match: IfMatch = "") -> Versioned[PolicyView]:
    """Remember a rule for all projects, after those that are there. What is not named fits everything."""
    async with server.edit_lock:
        book = _open_rulebook(server, if_match)
        require_sensible_rule(body)
        book.remember([body])
    return _policy_view(server, server.workspace)


@routes.delete("/policy/rules/{number}", scope="admin", gives=PolicyView, errors=(404, 412))
async def remove_rule(server: ServerState, number: int, if_match: IfMatch = "") -> Versioned[PolicyView]:
    """Forget a remembered rule."""
    async with server.edit_lock:
        _open_rulebook(server, if_match).forget_rule(number)
    return _policy_view(server, server.workspace)


@routes.put("/policy/order", scope="admin", gives=PolicyView, errors=(412,), example=RuleOrderBody(order=[2, 1]))
async def reorder_rules(server: ServerState, body: RuleOrderBody, if_match: IfMatch = "") -> Versioned[PolicyView]:
    """Put the remembered rules into another order."""
    async with server.edit_lock:
        book = _open_rulebook(server, if_match)
        known = book.remembered_rules()
        if sorted(body.order) != list(range(1, len(known) + 1)):
            raise UserError(
                f"The order must have each number from 1 to {len(known)} once.", next=["GET /api/v1/policy"]
            )
        book.replace_rules([known[number - 1] for number in body.order])
    return _policy_view(server, server.workspace)


@routes.post(
    "/policy/explain",
    scope="read",
    gives=CallDecisionView,
    errors=(404,),
    example=ExplainBody(tool="shell", arguments={"command": "git push --force"}),
)
async def explain_call_decision(server: ServerState, body: ExplainBody) -> CallDecisionView:
    """What would be decided about a call, and the way to it. Nothing is run."""
    tools = server.app.runtime.executor.tools
    if body.tool not in tools:
        raise NotFound(f"There is no tool {body.tool!r}.{suggest_word(body.tool, tools)}", next=["GET /api/v1/tools"])
    own = await server.app.runtime.find_session(body.session) if body.session else None
    summary = own or SessionState(workspace=str(server.workspace.resolve()))
    summary.mode = body.mode or (summary.mode if own else server.app.config.settings.mode)
    call = ToolCall("explained", body.tool, msgspec.json.encode(body.arguments).decode())
    try:
        return make_decision_view(call, explain_decision(server.app.runtime.executor, call, summary), summary.mode)
    except ToolError as error:
        raise UserError(str(error), kind="bad_arguments", next=error.trouble.next) from error


@routes.get("/policy/grants", scope="read", gives=ListPage[GrantView], errors=(404,))
async def list_grants(server: ServerState, session: Annotated[str, Query(max_length=200)] = "") -> ListPage[GrantView]:
    """What is allowed for the rest of a session, in one session or in all; what is over is left out."""
    runtime = server.app.runtime
    found = [await runtime.find_session(session)] if session else await runtime.list_sessions()
    now = SystemClock().now()
    allowed = [
        GrantView(session=one.id, number=number, rule=rule, told=describe_rule(rule))
        for one in found
        for number, rule in enumerate(one.grants, 1)
        if unexpired_rules([rule], now)
    ]
    return ListPage(items=allowed)


@routes.delete("/policy/grants/{session}/{number}", scope="approve", errors=(404, 409))
async def revoke_grant(server: ServerState, principal: Principal, session: str, number: int) -> None:
    """Take back what was allowed for the rest of a session."""
    one = await server.app.runtime.find_session(session)
    if not 1 <= number <= len(one.grants):
        raise NotFound(f"The session has no grant {number}.", next=["GET /api/v1/policy/grants"])
    await server.app.runtime.send(one.id, RevokeGrant(rule=one.grants[number - 1], actor=principal.actor))


def _open_rulebook(server: ServerState, if_match: str) -> FileRuleStore:
    book = build_rule_store(server.app.config)
    check_if_match(_rulebook_etag(book), if_match)
    return book


def _rulebook_etag(book: FileRuleStore) -> str:
    return content_tag(msgspec.json.encode(book.remembered_rules()).decode())


def _policy_view(server: ServerState, place: Path) -> Versioned[PolicyView]:
    server.live_config.check_files()
    book = build_rule_store(server.app.config)
    rules = book.read(place)
    views = [
        RuleView(
            source=source,
            number=number or None,
            rule=rule,
            told=describe_rule(rule),
            heeded=source != "project" or rule.decision != "allow",
        )
        for source, number, rule in list_rules(server.app.config.settings.rules, book, rules)
    ]
    return Versioned(
        PolicyView(rules=views, project=str(place / PROJECT_RULES_FILE), trouble=rules.trouble), _rulebook_etag(book)
    )
