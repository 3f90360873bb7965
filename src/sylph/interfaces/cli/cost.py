"""`sylph cost`: what was spent, by day, session, model, role, label, faculty or tool, with a small chart."""

from typing import Any, get_args

import click
import msgspec

from sylph.app import App
from sylph.core.text import count
from sylph.engine.budget.costs import By, Cost, summed
from sylph.interfaces import allowance
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.table import aligned
from sylph.interfaces.render import flat, money
from sylph.interfaces.spent import spent

WIDTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"


@click.command()
@click.option("--by", type=click.Choice(get_args(By)), default="day", show_default=True, help="What each row is about.")
@click.option("--since", default="30d", show_default=True, metavar="WHEN", help="12h, 7d, 4w, 2026-11-01, or all.")
@json_option
@click.pass_obj
def command(door: Door, by: By, since: str, *, as_json: bool) -> int:
    """Show what was spent, and how the budgets stand.

    \b
    A faculty is the group of tools that an answer called; an answer without a call is talk.
    What a call cost whose end nobody knows is counted at the most it can have been.
    """

    async def work(app: App) -> int:
        told = await spent(app, by, since)
        if as_json:
            return put_json(msgspec.to_builtins(told))
        titles = {one.id: one.title for one in await app.runtime.sessions()} if by == "session" else {}
        show(told.rows, by, titles)
        _show_budgets(told.budgets)
        return 0

    return door.look(work)


def show(rows: list[Cost], by: By, titles: dict[str, str]) -> None:
    if not rows:
        put("Nothing was spent in this time.")
        return
    whole = summed(rows)
    priced = any(row.cost for row in rows)
    most = max(_height(row, priced=priced) for row in rows)
    table = [[by.upper(), "CALLS", "IN", "OUT", "COST", ""]]
    table += [_row(row, bar(_height(row, priced=priced), most), titles.get(row.key, "")) for row in rows]
    table += [_row(whole, "", "")] if len(rows) > 1 else []
    put_table(table, drop=(5, 2, 3))
    if whole.unknown:
        put(
            f"{money(whole.guessed) or '$0.00'} of it is unknown, counted at the most it can have been: "
            f"{count(whole.unknown, 'call')} whose end nobody knows."
        )
    if whole.unpriced:
        put(f"{count(whole.unpriced, 'call')} not in the cost: the price is not known (sylph models).")


def _height(row: Cost, *, priced: bool) -> int:
    """What the chart shows: money where there is any, else tokens."""
    return row.cost if priced else row.input + row.output


def _row(row: Cost, chart: str, title: str) -> list[str]:
    name = f"{row.key}  {flat(title, 30)}".rstrip()
    cost = "-" if row.unpriced == row.calls and not row.cost else money(row.cost)
    return [name, f"{row.calls:,}", f"{row.input:,}", f"{row.output:,}", cost, chart]


def bar(value: int, most: int) -> str:
    """A bar, as exact as eighths of a character allow; what is more than nothing is seen."""
    eighths = max(round(value * WIDTH * 8 / most), 1) if most and value else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _show_budgets(budgets: list[dict[str, Any]]) -> None:
    if budgets:
        put("")
        put("\n".join(aligned([["budget", allowance.name_of(row), allowance.line_of(row)] for row in budgets])))
