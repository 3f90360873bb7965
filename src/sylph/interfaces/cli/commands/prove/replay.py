"""`sylph prove replay`: every session comes out of its log again as it was."""

import click

from sylph.app import App
from sylph.core.text.formatting import count_noun
from sylph.features.prove.replay.proof import ReplayProofReport, replay_scenarios, replay_sessions
from sylph.interfaces.cli.commands.session.replay import divergence_lines
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows
from sylph.providers.replay_providers import create_replay_providers


@click.command()
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Only the N newest sessions.")
@json_option
@click.pass_obj
def replay(cli: CliContext, last: int | None, *, as_json: bool) -> int:
    """Run every session of this store again from its log, and scripted ones on top, and compare byte by byte."""

    async def work(app: App) -> dict[str, ReplayProofReport]:
        runtime = app.runtime
        found = await runtime.list_sessions() + await runtime.list_sessions(deleted=True)
        ids = [summary.id for summary in found][:last]
        return {
            "here": await replay_sessions(runtime.log, ids, runtime.parts, create_replay_providers),
            "scripted": await replay_scenarios(cli.config.environ.get("PATH", "")),
        }

    reports = cli.run(work)
    if as_json:
        print_json(reports)
    else:
        print_text("\n".join(_report_lines(reports)))
    return exit_code.FAILED.number if any(report.diverged for report in reports.values()) else 0


def _report_lines(reports: dict[str, ReplayProofReport]) -> list[str]:
    head = ["sessions", "", "events", "prompts", "identical", "diverged", "left out", "events/s"]
    lines = align_rows([head, *(_report_row(name, report) for name, report in reports.items())])
    for report in reports.values():
        for row in report.diverged:
            assert row.divergence
            after = f", after {count_noun(row.events, 'event')}"
            lines += ["", f"{row.session} {row.scenario}".rstrip() + after, *divergence_lines(row.divergence)]
    return lines


def _report_row(name: str, report: ReplayProofReport) -> list[str]:
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
