"""The status, the cost and the doctor's findings over HTTP."""

import time
from typing import Annotated, Any

import msgspec
from fastapi import Query
from msgspec import Struct

from sylph import __version__
from sylph.core.errors import SylphError
from sylph.core.facts import Mode
from sylph.core.messages import Usage
from sylph.engine.budget.costs import By
from sylph.interfaces import checks
from sylph.interfaces.checks import Finding
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes
from sylph.interfaces.spent import Spent, spent, spent_daily
from sylph.interfaces.standing import look

routes = Routes("status")


class SandboxView(Struct, frozen=True, kw_only=True):
    enabled: bool
    layer: str
    said: str
    network: str


class ServiceView(Struct, frozen=True, kw_only=True):
    name: str
    url: str
    reachable: bool
    models: int
    trouble: str


class OpenTurnView(Struct, frozen=True, kw_only=True):
    session: str
    turn: str
    title: str
    state: str
    task: str
    pid: int
    unconfined: str


class QuestionView(Struct, frozen=True, kw_only=True):
    session: str
    id: str
    question: str


class BudgetView(Struct, frozen=True, kw_only=True):
    """How a budget stands. Money is in micro-dollars; `held` is for calls under way."""

    scope: str
    name: str
    what: str
    used: int
    held: int
    unknown: int
    cap: int
    percent: int


class UndeliveredView(Struct, frozen=True, kw_only=True):
    session: str
    id: str
    title: str
    attempts: int


class StatusView(Struct, frozen=True, kw_only=True):
    """What Sylph is doing, with what, and at what cost."""

    version: str
    started: int
    uptime: int
    """Seconds."""
    workspace: str
    model: str
    mode: Mode
    sandbox: SandboxView
    providers: list[ServiceView]
    data: str
    bytes: int
    sessions: int
    turns: int
    running: list[OpenTurnView]
    interrupted: list[OpenTurnView]
    questions: list[QuestionView]
    undelivered: list[UndeliveredView]
    usage: Usage
    cost: int | None
    budgets: list[BudgetView]
    restart: bool
    """Whether something was configured that counts only from the next start on."""
    pending: list[str]
    config_trouble: str = ""


class CostView(Struct, frozen=True, kw_only=True):
    """What was spent: one row for each day, session …, and the sum. Money is in micro-dollars."""

    by: By
    since: int
    rows: list["CostRow"]
    total: "CostRow"
    budgets: list[BudgetView]


class CostRow(Struct, frozen=True, kw_only=True):
    key: str
    calls: int
    input: int
    output: int
    cached: int
    cost: int
    guessed: int
    unknown: int
    unpriced: int


class DailyRow(Struct, frozen=True, kw_only=True):
    """What one model was used for on one day. What `unpriced` calls cost is not in it."""

    day: str
    model: str
    calls: int
    input: int
    output: int
    cost: int
    unpriced: int


class DoctorView(Struct, frozen=True, kw_only=True):
    ok: bool
    findings: list[Finding]


@routes.get("/status", scope="read", gives=StatusView)
async def status(house: House) -> StatusView:
    """The model, the services, the store, open turns, open questions and the cost so far."""
    house.live.look()
    facts = await look(house.app, await house.services.heard(house.app))
    known: dict[str, Any] = {
        "version": __version__,
        "started": int(house.started * 1000),
        "uptime": int(time.time() - house.started),
        "workspace": str(house.workspace),
        "restart": bool(house.live.pending),
        "pending": house.live.pending,
        "config_trouble": str(house.live.trouble or ""),
    }
    return msgspec.convert(msgspec.to_builtins(facts) | known, StatusView)


@routes.get("/cost", scope="read", gives=CostView)
async def cost(
    house: House,
    by: By = "day",
    since: Annotated[str, Query(max_length=40, description="12h, 7d, 4w, 2026-11-01, or all.")] = "30d",
) -> Spent:
    """What was spent, and how the budgets stand."""
    return await spent(house.app, by, since)


@routes.get("/cost/daily", scope="read", gives=list[DailyRow])
async def cost_daily(
    house: House,
    since: Annotated[str, Query(max_length=40, description="12h, 7d, 4w, 2026-11-01, or all.")] = "30d",
) -> list[DailyRow]:
    """What was spent on each day with each model, the oldest day first."""
    rows = await spent_daily(house.app, since)
    return [
        DailyRow(
            day=day,
            model=model,
            calls=row.calls,
            input=row.input,
            output=row.output,
            cost=row.cost,
            unpriced=row.unpriced,
        )
        for (day, model), row in rows.items()
    ]


@routes.get("/doctor", scope="admin", gives=DoctorView)
async def doctor(house: House) -> DoctorView:
    """Is everything there and in order? Each finding comes with what to do about it. It takes a while."""
    config = house.app.config
    findings = [*checks.machine(config), checks.config(config), *checks.rules(config, house.workspace)]
    try:
        findings += await checks.program(house.app)
    except SylphError as error:
        findings.append(Finding("store", "fail", str(error), error.trouble.next))
    return DoctorView(ok=not any(one.grade == "fail" for one in findings), findings=findings)
