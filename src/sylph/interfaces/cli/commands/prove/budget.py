"""`sylph prove budget`: many agents spend against one cap while processes are killed, and shows that it held."""

import sys

import click

from sylph.core.facts.budget import format_dollars
from sylph.core.text.formatting import count_noun
from sylph.features.prove.budget.billing_server import ServiceBill
from sylph.features.prove.budget.proof import BudgetProofOptions, BudgetProofReport, prove_budget
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows


@click.command()
@click.option("--agents", type=click.IntRange(2, 1000), default=200, show_default=True, help="Agents at a time.")
@click.option("--processes", type=click.IntRange(1, 64), default=8, show_default=True, help="In so many processes.")
@click.option("--kills", type=click.IntRange(0), default=12, show_default=True, help="Processes killed in mid-call.")
@click.option("--seed", type=int, default=1, show_default=True, help="What is left to chance, nearly the same again.")
@json_option
def budget(agents: int, processes: int, kills: int, seed: int, *, as_json: bool) -> int:
    """Let many agents spend against one cap, kill processes in mid-call, and check what the service charged.

    \b
    The service is a stand-in on this machine that charges for every request that arrives, answered or not.
    It works in a scratch folder, which stays only if a check failed.
    """
    report = prove_budget(
        BudgetProofOptions(agents=agents, processes=min(processes, agents), kills=kills, seed=seed), _show_progress
    )
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        print_json({"ok": report.ok, "report": report})
    else:
        print_text("\n".join(_report_lines(report)))
    return exit_code.OK.number if report.ok else exit_code.FAILED.number


def _show_progress(bill: ServiceBill, cap: int, kills: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{format_dollars(bill.money)} of {format_dollars(cap)}, {count_noun(kills, 'kill')}")


def _report_lines(report: BudgetProofReport) -> list[str]:
    bill = report.bill
    rows = [
        ["cap", format_dollars(report.cap), f"{report.cap_tokens:,} tokens"],
        ["charged by the service", format_dollars(bill.money), f"{bill.tokens:,} tokens"],
        ["counted by Sylph", format_dollars(report.counted), f"{report.counted_tokens:,} tokens"],
        ["of it unknown", format_dollars(report.unknown), "counted at the most it can have been"],
    ]
    said = (
        f"{count_noun(report.agents, 'agent')} in {report.processes} processes, {count_noun(bill.calls, 'call')}; "
        f"{report.kills} killed with {count_noun(report.killed_calls, 'call')} under way, "
        f"{bill.cut} answers broken off, {bill.refused} refused; "
        f"{report.stopped} stops at the cap; {report.seconds:.0f} s"
    )
    told = [*align_rows(rows), "", said]
    told += [f"VIOLATED: {problem}" for problem in report.problems]
    return [*told, *([f"scratch: {report.scratch}"] if report.scratch else [])]
