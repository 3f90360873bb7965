"""The status, the cost and the doctor's findings over HTTP."""

import time
from typing import Annotated, Any

import msgspec
from fastapi import Query
from msgspec import Struct

from sylph import __version__
from sylph.core.errors import SylphError
from sylph.core.messages import Usage
from sylph.core.permission.types import Mode
from sylph.engine.budget.cost_breakdown import CostGrouping
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.reports import doctor_checks
from sylph.interfaces.reports.cost_report import CostReport, build_cost_report, load_daily_costs
from sylph.interfaces.reports.doctor_checks import DoctorFinding
from sylph.interfaces.reports.status_report import build_status

routes = RouteGroup("status")


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


class OpenQuestionView(Struct, frozen=True, kw_only=True):
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
    questions: list[OpenQuestionView]
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

    by: CostGrouping
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


class DailyCostRow(Struct, frozen=True, kw_only=True):
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
    findings: list[DoctorFinding]


@routes.get("/status", scope="read", gives=StatusView)
async def get_status(server: ServerState) -> StatusView:
    """The model, the services, the store, open turns, open questions and the cost so far."""
    server.live_config.check_files()
    facts = await build_status(server.app, await server.provider_status.get_providers(server.app))
    known: dict[str, Any] = {
        "version": __version__,
        "started": int(server.started * 1000),
        "uptime": int(time.time() - server.started),
        "workspace": str(server.workspace),
        "restart": bool(server.live_config.pending),
        "pending": server.live_config.pending,
        "config_trouble": str(server.live_config.trouble or ""),
    }
    return msgspec.convert(msgspec.to_builtins(facts) | known, StatusView)


@routes.get("/cost", scope="read", gives=CostView)
async def get_cost(
    server: ServerState,
    by: CostGrouping = "day",
    since: Annotated[str, Query(max_length=40, description="12h, 7d, 4w, 2026-11-01, or all.")] = "30d",
) -> CostReport:
    """What was spent, and how the budgets stand."""
    return await build_cost_report(server.app, by, since)


@routes.get("/cost/daily", scope="read", gives=list[DailyCostRow])
async def get_daily_cost(
    server: ServerState,
    since: Annotated[str, Query(max_length=40, description="12h, 7d, 4w, 2026-11-01, or all.")] = "30d",
) -> list[DailyCostRow]:
    """What was spent on each day with each model, the oldest day first."""
    rows = await load_daily_costs(server.app, since)
    return [
        DailyCostRow(
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
async def run_doctor(server: ServerState) -> DoctorView:
    """Is everything there and in order? Each finding comes with what to do about it. It takes a while."""
    config = server.app.config
    findings = [
        *doctor_checks.check_machine(config),
        doctor_checks.check_config(config),
        *doctor_checks.check_rules(config, server.workspace),
    ]
    try:
        findings += await doctor_checks.check_app(server.app)
    except SylphError as error:
        findings.append(DoctorFinding("store", "fail", str(error), error.trouble.next))
    return DoctorView(ok=not any(one.grade == "fail" for one in findings), findings=findings)
