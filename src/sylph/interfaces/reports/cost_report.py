"""What was spent since a moment, and how the budgets stand, as data."""

import re
import time
from datetime import datetime
from typing import Any

from msgspec import Struct

from sylph.app import App
from sylph.compose.engine import log_path
from sylph.core.errors import UserError
from sylph.engine.budget.cost_breakdown import (
    CostGroup,
    CostGrouping,
    daily_costs,
    list_costs,
    sum_costs,
    unknown_costs,
)
from sylph.interfaces.reports.background_query import query_in_background
from sylph.interfaces.text import budget_text

UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


class CostReport(Struct, frozen=True, kw_only=True):
    by: CostGrouping
    since: int
    rows: list[CostGroup]
    total: CostGroup
    budgets: list[dict[str, Any]]


async def build_cost_report(app: App, by: CostGrouping, since: str) -> CostReport:
    began = parse_since(since)
    plugins = app.runtime.parts.plugins
    tools = {tool.name: plugin.name for plugin in plugins for tool in plugin.tools}
    rows = await query_in_background(log_path(app.config), lambda query: list_costs(query, by, began, tools))
    rows += unknown_costs(await app.open_reservations(), began)
    budgets = list(budget_text.budget_rows(await app.budget_balances()))
    return CostReport(by=by, since=began, rows=rows, total=sum_costs(rows), budgets=budgets)


async def load_daily_costs(app: App, since: str) -> dict[tuple[str, str], CostGroup]:
    """By day and model."""
    began = parse_since(since)
    return await query_in_background(log_path(app.config), lambda query: daily_costs(query, began))


def parse_since(since: str) -> int:
    """The moment from which on it is counted, in milliseconds since 1970."""
    if since == "all":
        return 0
    if span := re.fullmatch(r"(\d{1,6})([hdw])", since):
        return round((time.time() - int(span[1]) * UNIT_SECONDS[span[2]]) * 1000)
    try:
        return round(datetime.fromisoformat(since).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UserError(f"{since!r} is no time.", next=["--since 7d", "--since 2026-11-01", "--since all"]) from error
