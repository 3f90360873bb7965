"""What was spent since a moment, and how the budgets stand, as data."""

import re
import time
from datetime import datetime
from typing import Any

from msgspec import Struct

from sylph.app import App
from sylph.core.errors import UserError
from sylph.engine.budget.costs import By, Cost, costs, daily, held, summed
from sylph.interfaces import allowance
from sylph.interfaces.aside import aside
from sylph.wiring import store_of

SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


class Spent(Struct, frozen=True, kw_only=True):
    by: By
    since: int
    rows: list[Cost]
    total: Cost
    budgets: list[dict[str, Any]]


async def spent(app: App, by: By, since: str) -> Spent:
    began = begin(since)
    plugins = app.runtime.parts.plugins
    tools = {tool.name: plugin.name for plugin in plugins for tool in plugin.tools}
    rows = await aside(store_of(app.config), lambda query: costs(query, by, began, tools))
    rows += held(await app.put_aside(), began)
    budgets = list(allowance.rows(await app.budgets()))
    return Spent(by=by, since=began, rows=rows, total=summed(rows), budgets=budgets)


async def spent_daily(app: App, since: str) -> dict[tuple[str, str], Cost]:
    """By day and model."""
    began = begin(since)
    return await aside(store_of(app.config), lambda query: daily(query, began))


def begin(since: str) -> int:
    """The moment from which on it is counted, in milliseconds since 1970."""
    if since == "all":
        return 0
    if span := re.fullmatch(r"(\d{1,6})([hdw])", since):
        return round((time.time() - int(span[1]) * SECONDS[span[2]]) * 1000)
    try:
        return round(datetime.fromisoformat(since).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UserError(f"{since!r} is no time.", next=["--since 7d", "--since 2026-11-01", "--since all"]) from error
