"""`sylph cost`: what was spent, by day, session, model, role, label, faculty or tool, with a small chart."""

from typing import Any, get_args

import click
import msgspec

from sylph.app import App
from sylph.core.text.formatting import count_noun
from sylph.engine.budget.cost_breakdown import CostGroup, CostGrouping, sum_costs
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows
from sylph.interfaces.reports.cost_report import build_cost_report
from sylph.interfaces.text import budget_text
from sylph.interfaces.text.render import format_money, one_line

WIDTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"


@click.command()
@click.option(
    "--by", type=click.Choice(get_args(CostGrouping)), default="day", show_default=True, help="What each row is about."
)
@click.option("--since", default="30d", show_default=True, metavar="WHEN", help="12h, 7d, 4w, 2026-11-01, or all.")
@json_option
@click.pass_obj
def command(cli: CliContext, by: CostGrouping, since: str, *, as_json: bool) -> int:
    """Show what was spent, and how the budgets stand.

    \b
    A faculty is the group of tools that an answer called; an answer without a call is talk.
    What a call cost whose end nobody knows is counted at the most it can have been.
    """

    async def work(app: App) -> int:
        told = await build_cost_report(app, by, since)
        if as_json:
            return print_json(msgspec.to_builtins(told))
        titles = {one.id: one.title for one in await app.runtime.list_sessions()} if by == "session" else {}
        show_costs(told.rows, by, titles)
        _show_budgets(told.budgets)
        return 0

    return cli.run_read_only(work)


def show_costs(rows: list[CostGroup], by: CostGrouping, titles: dict[str, str]) -> None:
    if not rows:
        print_text("Nothing was spent in this time.")
        return
    whole = sum_costs(rows)
    priced = any(row.cost for row in rows)
    most = max(_bar_value(row, priced=priced) for row in rows)
    table = [[by.upper(), "CALLS", "IN", "OUT", "COST", ""]]
    table += [_cost_row(row, draw_bar(_bar_value(row, priced=priced), most), titles.get(row.key, "")) for row in rows]
    table += [_cost_row(whole, "", "")] if len(rows) > 1 else []
    print_table(table, drop=(5, 2, 3))
    if whole.unknown:
        print_text(
            f"{format_money(whole.guessed) or '$0.00'} of it is unknown, counted at the most it can have been: "
            f"{count_noun(whole.unknown, 'call')} whose end nobody knows."
        )
    if whole.unpriced:
        print_text(f"{count_noun(whole.unpriced, 'call')} not in the cost: the price is not known (sylph models).")


def _bar_value(row: CostGroup, *, priced: bool) -> int:
    """What the chart shows: money where there is any, else tokens."""
    return row.cost if priced else row.input + row.output


def _cost_row(row: CostGroup, chart: str, title: str) -> list[str]:
    name = f"{row.key}  {one_line(title, 30)}".rstrip()
    cost = "-" if row.unpriced == row.calls and not row.cost else format_money(row.cost)
    return [name, f"{row.calls:,}", f"{row.input:,}", f"{row.output:,}", cost, chart]


def draw_bar(value: int, most: int) -> str:
    """A bar, as exact as eighths of a character allow; what is more than nothing is seen."""
    eighths = max(round(value * WIDTH * 8 / most), 1) if most and value else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _show_budgets(budgets: list[dict[str, Any]]) -> None:
    if budgets:
        print_text("")
        print_text(
            "\n".join(
                align_rows([["budget", budget_text.budget_name(row), budget_text.budget_line(row)] for row in budgets])
            )
        )
