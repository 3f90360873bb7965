"""The policy over HTTP: rules, the way to a decision, and what was allowed for a session."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import Query
from msgspec import Meta, Struct

from sylph.config.rulebook import PROJECT, FileRulebook
from sylph.core.clock import SystemClock
from sylph.core.commands import Revoke
from sylph.core.errors import NotFound, ToolError, UserError
from sylph.core.facts import Mode
from sylph.core.messages import ToolCall
from sylph.core.permission import Rule
from sylph.core.rule_words import told
from sylph.core.rules import live
from sylph.core.similar import guess
from sylph.engine.explain import explain
from sylph.engine.summary import Summary
from sylph.interfaces.http.config import IfMatch
from sylph.interfaces.http.files.naming import FOREIGN, named
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes, Versioned, unchanged
from sylph.interfaces.http.who import Who
from sylph.interfaces.ruled import Decided, agreeable, decided, listed
from sylph.interfaces.versions import tag_of
from sylph.wiring import rulebook_of

routes = Routes("policy")
Folder = Annotated[str, Query(max_length=4000, description="With the rules of the project in this folder.")]


class RuleView(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """One rule. Only remembered ones have a number, and are changed here."""

    source: str
    number: int | None
    rule: Rule
    told: Annotated[str, Meta(description="The rule in words.")]
    heeded: bool = True
    """False for a project's `allow`: a project can only make things stricter."""


class PolicyView(Struct, frozen=True, kw_only=True):
    """The rules in their order: the first that fits decides."""

    rules: list[RuleView]
    project: str
    trouble: str = ""


class OrderBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    rule: Rule
    told: Annotated[str, Meta(description="The rule in words.")]


@routes.get("/policy", scope="read", also=FOREIGN, gives=PolicyView, errors=(422,))
async def get(house: House, who: Who, workspace: Folder = "") -> Versioned[PolicyView]:
    """The rules that apply, in their order."""
    return _policy(house, await named(house, who, workspace) if workspace else house.workspace)


@routes.post(
    "/policy/rules",
    scope="admin",
    gives=PolicyView,
    status=201,
    errors=(412,),
    example=Rule(decision="deny", command="git push *"),
)
async def add(house: House, body: Rule, if_match: IfMatch = "") -> Versioned[PolicyView]:
    """Remember a rule for all projects, after those that are there. What is not named fits everything."""
    async with house.editing:
        book = _book(house, if_match)
        agreeable(body)
        book.remember([body])
    return _policy(house, house.workspace)


@routes.delete("/policy/rules/{number}", scope="admin", gives=PolicyView, errors=(404, 412))
async def remove(house: House, number: int, if_match: IfMatch = "") -> Versioned[PolicyView]:
    """Forget a remembered rule."""
    async with house.editing:
        _book(house, if_match).forget(number)
    return _policy(house, house.workspace)


@routes.put("/policy/order", scope="admin", gives=PolicyView, errors=(412,), example=OrderBody(order=[2, 1]))
async def reorder(house: House, body: OrderBody, if_match: IfMatch = "") -> Versioned[PolicyView]:
    """Put the remembered rules into another order."""
    async with house.editing:
        book = _book(house, if_match)
        known = book.remembered()
        if sorted(body.order) != list(range(1, len(known) + 1)):
            raise UserError(
                f"The order must have each number from 1 to {len(known)} once.", next=["GET /api/v1/policy"]
            )
        book.replace([known[number - 1] for number in body.order])
    return _policy(house, house.workspace)


@routes.post(
    "/policy/explain",
    scope="read",
    gives=Decided,
    errors=(404,),
    example=ExplainBody(tool="shell", arguments={"command": "git push --force"}),
)
async def explained(house: House, body: ExplainBody) -> Decided:
    """What would be decided about a call, and the way to it. Nothing is run."""
    tools = house.app.runtime.executor.tools
    if body.tool not in tools:
        raise NotFound(f"There is no tool {body.tool!r}.{guess(body.tool, tools)}", next=["GET /api/v1/tools"])
    own = await house.app.runtime.find(body.session) if body.session else None
    summary = own or Summary(workspace=str(house.workspace.resolve()))
    summary.mode = body.mode or (summary.mode if own else house.app.config.settings.mode)
    call = ToolCall("explained", body.tool, msgspec.json.encode(body.arguments).decode())
    try:
        return decided(call, explain(house.app.runtime.executor, call, summary), summary.mode)
    except ToolError as error:
        raise UserError(str(error), kind="bad_arguments", next=error.trouble.next) from error


@routes.get("/policy/grants", scope="read", gives=Page[GrantView], errors=(404,))
async def grants(house: House, session: Annotated[str, Query(max_length=200)] = "") -> Page[GrantView]:
    """What is allowed for the rest of a session, in one session or in all; what is over is left out."""
    runtime = house.app.runtime
    found = [await runtime.find(session)] if session else await runtime.sessions()
    now = SystemClock().now()
    allowed = [
        GrantView(session=one.id, number=number, rule=rule, told=told(rule))
        for one in found
        for number, rule in enumerate(one.grants, 1)
        if live([rule], now)
    ]
    return Page(items=allowed)


@routes.delete("/policy/grants/{session}/{number}", scope="approve", errors=(404, 409))
async def revoke(house: House, who: Who, session: str, number: int) -> None:
    """Take back what was allowed for the rest of a session."""
    one = await house.app.runtime.find(session)
    if not 1 <= number <= len(one.grants):
        raise NotFound(f"The session has no grant {number}.", next=["GET /api/v1/policy/grants"])
    await house.app.runtime.send(one.id, Revoke(rule=one.grants[number - 1], actor=who.actor))


def _book(house: House, if_match: str) -> FileRulebook:
    book = rulebook_of(house.app.config)
    unchanged(_tag(book), if_match)
    return book


def _tag(book: FileRulebook) -> str:
    return tag_of(msgspec.json.encode(book.remembered()).decode())


def _policy(house: House, place: Path) -> Versioned[PolicyView]:
    house.live.look()
    book = rulebook_of(house.app.config)
    rules = book.read(place)
    views = [
        RuleView(
            source=source,
            number=number or None,
            rule=rule,
            told=told(rule),
            heeded=source != "project" or rule.decision != "allow",
        )
        for source, number, rule in listed(house.app.config.settings.rules, book, rules)
    ]
    return Versioned(PolicyView(rules=views, project=str(place / PROJECT), trouble=rules.trouble), _tag(book))
