"""A session as the API shows it: a row of a list, and all of it."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Any

from msgspec import Meta, Struct, convert, to_builtins

from sylph.app import App
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import InputDelivery, PlanStep
from sylph.core.messages import Usage
from sylph.core.permission.rule_text import describe_rules
from sylph.core.permission.types import AccessSummary, Effect, Mode, PermissionRule, Risk
from sylph.core.text import window_usage
from sylph.engine.folds.session_list import SessionListItem, build_list_item
from sylph.engine.folds.session_state import SessionState
from sylph.engine.folds.state_machine import ActivityState
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.text import budget_text

Ms = Annotated[int, Meta(description="Milliseconds since 1970.")]
Money = Annotated[int | None, Meta(description="Micro-dollars; missing where no price is known.")]


class SessionRow(Struct, frozen=True, kw_only=True):
    """What a list shows of a session."""

    id: str
    title: str
    workspace: str
    model: str
    mode: Mode
    sandbox: bool
    state: ActivityState
    label: str
    created: Ms
    updated: Ms
    seq: Annotated[int, Meta(description="The number of its newest fact.")]
    turns: int
    asked: Annotated[int, Meta(description="How many questions wait for a person.")]
    queued: Annotated[int, Meta(description="How many messages wait for their turn.")]
    usage: Usage
    cost: Money
    parent: Annotated[str, Meta(description="The session it was forked from; empty if from none.")]
    forked_at: Annotated[int, Meta(description="The fact of the parent after which the two differ.")]
    pinned: bool
    archived: bool
    deleted: bool
    unread: Annotated[bool, Meta(description="Whether a turn has ended since a person has `seen` it.")]
    interrupted: Annotated[bool, Meta(description="Whether work was left open by a process that is gone.")]


class OpenCallView(Struct, frozen=True, kw_only=True):
    """A call that has no result yet. `arguments` is its JSON as the model wrote it."""

    id: str
    name: str
    arguments: str
    allowed: bool
    started: bool


class SessionQuestion(Struct, frozen=True, kw_only=True):
    """Something a person has to say. `detail` is what would be done, as a diff where it changes a file.

    `grants` is what the choice `session` would allow, `rules` what `always` would remember.
    """

    id: str
    kind: Annotated[str, Meta(description="`approval` or `question`.")]
    question: str
    detail: str
    choices: tuple[str, ...]
    free: Annotated[bool, Meta(description="Whether own words are welcome beside the choices.")]
    calls: tuple[OpenCallView, ...]
    effect: Effect | None
    risk: Risk | None
    reach: AccessSummary
    grants: tuple[PermissionRule, ...]
    rules: tuple[PermissionRule, ...]
    covers: Annotated[dict[str, str], Meta(description="What `session` and `always` would allow, in words.")]


class QueuedMessage(Struct, frozen=True, kw_only=True):
    id: str
    text: str
    delivery: InputDelivery
    dry_run: bool


class ContextGauge(Struct, frozen=True, kw_only=True):
    """How full the model's window is; a window of 0 is unknown."""

    tokens: int
    window: int
    percent: int
    level: window_usage.WindowLevel


class BudgetRow(Struct, frozen=True, kw_only=True):
    """A budget the session draws on. Money is in micro-dollars."""

    scope: str
    name: str
    what: str
    used: int
    held: int
    unknown: int
    cap: int
    percent: int


class SessionView(SessionRow, frozen=True, kw_only=True):
    """All there is to know of a session but its history."""

    roles: Annotated[dict[str, str], Meta(description="The models of roles, where they are not as configured.")]
    budget: Annotated[int | None, Meta(description="A cap of its own in micro-dollars.")]
    budgets: tuple[BudgetRow, ...]
    guessed: Annotated[int, Meta(description="How much of the cost is an upper bound.")]
    open_turn: str
    open_since: Ms
    dry_run: bool
    substitute: Annotated[str, Meta(description="The model that stands in for the rest of the turn.")]
    questions: tuple[SessionQuestion, ...]
    queue: tuple[QueuedMessage, ...]
    calls: tuple[OpenCallView, ...]
    plan: tuple[PlanStep, ...]
    context: ContextGauge
    undelivered: Annotated[int, Meta(description="How many notifications are still on their way.")]


ROW_VALUES: dict[str, Any] = {
    "id": "k3xw7hqd8c22",
    "title": "Mend the parser",
    "workspace": "/home/ann/project",
    "model": "openai/gpt-5",
    "mode": "ask",
    "sandbox": True,
    "state": "idle",
    "label": "",
    "created": 1_762_000_000_000,
    "updated": 1_762_000_060_000,
    "seq": 42,
    "turns": 2,
    "asked": 0,
    "queued": 0,
    "usage": Usage(input=5200, output=310, cached=4096),
    "cost": 9600,
    "parent": "",
    "forked_at": 0,
    "pinned": False,
    "archived": False,
    "deleted": False,
    "unread": True,
    "interrupted": False,
}
ROW_EXAMPLE = SessionRow(**ROW_VALUES)
VIEW_EXAMPLE = SessionView(
    **ROW_VALUES,
    roles={"judge": "openai/gpt-5-mini"},
    budget=500_000,
    budgets=(BudgetRow(scope="session", name="", what="money", used=9600, held=0, unknown=0, cap=500_000, percent=1),),
    guessed=0,
    open_turn="",
    open_since=0,
    dry_run=False,
    substitute="",
    questions=(),
    queue=(),
    calls=(),
    plan=(PlanStep("Read the parser", "done"), PlanStep("Write a test", "doing")),
    context=ContextGauge(tokens=5510, window=400_000, percent=1, level=""),
    undelivered=0,
)


def session_row(app: App, card: SessionListItem) -> SessionRow:
    return SessionRow(**row_fields(app.runtime, card))


def row_fields(runtime: Runtime, card: SessionListItem) -> dict[str, Any]:
    """The fields of a row."""
    left = bool(card.open_turn or card.queued) and not card.deleted
    shared = {name: getattr(card, name) for name in SessionRow.__struct_fields__ if name != "interrupted"}
    return {**shared, "interrupted": left and not runtime.holder_pid(card.id)}


async def build_session_view(app: App, summary: SessionState) -> SessionView:
    window = summary.window
    return SessionView(
        **row_fields(app.runtime, build_list_item(summary.id, summary)),
        roles=summary.roles,
        budget=summary.budget,
        budgets=await session_budgets(app, summary),
        guessed=summary.guessed,
        open_turn=summary.open_turn,
        open_since=summary.open_since if summary.open_turn else 0,
        dry_run=summary.dry_run,
        substitute=summary.substitute,
        questions=tuple(question_view(summary, asked) for asked in summary.asked.values()),
        queue=tuple(_queued_message(summary, id, text) for id, text in summary.queue.items()),
        calls=open_call_views(summary, list(summary.open_calls)),
        plan=summary.plan,
        context=ContextGauge(
            tokens=summary.context_tokens,
            window=window,
            percent=window_usage.window_percent(summary.context_tokens, window),
            level=window_usage.window_level(summary.context_tokens, window),
        ),
        undelivered=len(summary.outbox),
    )


async def session_budgets(app: App, summary: SessionState) -> tuple[BudgetRow, ...]:
    """How the budgets stand that a session draws on."""
    return tuple(convert(row, BudgetRow) for row in budget_text.budget_rows(await app.budget_balances(summary)))


def question_view(summary: SessionState, asked: Asked) -> SessionQuestion:
    offers = (("session", asked.grants), ("always", asked.rules))
    return SessionQuestion(
        id=asked.id,
        kind=asked.kind,
        question=asked.question,
        detail=asked.detail,
        choices=asked.choices,
        free=asked.free,
        calls=open_call_views(summary, asked.calls or (asked.call,)),
        effect=asked.effect,
        risk=asked.risk,
        reach=asked.reach,
        grants=asked.grants,
        rules=asked.rules,
        covers={name: describe_rules(each) for name, each in offers if each},
    )


def open_call_views(summary: SessionState, ids: Sequence[str]) -> tuple[OpenCallView, ...]:
    known = ((id, summary.open_calls[id]) for id in ids if id in summary.open_calls)
    return tuple(
        OpenCallView(id=id, name=call.name, arguments=call.arguments, allowed=call.decided, started=call.started)
        for id, call in known
    )


def _queued_message(summary: SessionState, id: str, text: str) -> QueuedMessage:
    delivery: InputDelivery = "follow" if id in summary.follows else "steer"
    return QueuedMessage(id=id, text=text, delivery=delivery, dry_run=id in summary.dry_inputs)


def session_etag(seen: SessionView) -> str:
    """The version of a session: where its log stands, and after that a print of all that can be edited."""
    edited = [getattr(seen, name) for name in EDITABLE_FIELDS]
    return f"{seen.seq}-{blake2b(repr(to_builtins(edited)).encode(), digest_size=6).hexdigest()}"


EDITABLE_FIELDS = ("title", "model", "mode", "sandbox", "budget", "pinned", "archived", "deleted", "roles")
