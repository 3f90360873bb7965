"""`sylph prove replay`: every session comes out of its log again as it was."""

import click

from sylph.app import App
from sylph.core.text import count
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.replay import divergence_lines
from sylph.interfaces.cli.table import aligned
from sylph.prove.replay import Report, scenarios, sessions
from sylph.providers.dialects import dialects


@click.command()
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Only the N newest sessions.")
@json_option
@click.pass_obj
def replay(door: Door, last: int | None, *, as_json: bool) -> int:
    """Run every session of this store again from its log, and scripted ones on top, and compare byte by byte."""

    async def work(app: App) -> dict[str, Report]:
        runtime = app.runtime
        found = await runtime.sessions() + await runtime.sessions(deleted=True)
        ids = [summary.id for summary in found][:last]
        return {
            "here": await sessions(runtime.log, ids, runtime.parts, dialects),
            "scripted": await scenarios(door.config.environ.get("PATH", "")),
        }

    reports = door.run(work)
    if as_json:
        put_json(reports)
    else:
        put("\n".join(_lines(reports)))
    return codes.FAILED.number if any(report.diverged for report in reports.values()) else 0


def _lines(reports: dict[str, Report]) -> list[str]:
    head = ["sessions", "", "events", "prompts", "identical", "diverged", "left out", "events/s"]
    lines = aligned([head, *(_row(name, report) for name, report in reports.items())])
    for report in reports.values():
        for row in report.diverged:
            assert row.divergence
            after = f", after {count(row.events, 'event')}"
            lines += ["", f"{row.session} {row.scenario}".rstrip() + after, *divergence_lines(row.divergence)]
    return lines


def _row(name: str, report: Report) -> list[str]:
    compared, diverged = report.compared, report.diverged
    events = sum(row.events for row in compared)
    speed = f"{events / report.seconds:,.0f}" if events else ""
    numbers = (
        len(report.rows),
        events,
        sum(row.prompts for row in compared),
        len(compared) - len(diverged),
        len(diverged),
        len(report.rows) - len(compared),
    )
    return [name, *(f"{number:,}" for number in numbers), speed]
