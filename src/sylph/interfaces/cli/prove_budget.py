"""`sylph prove budget`: many agents spend against one cap while processes are killed, and shows that it held."""

import sys

import click

from sylph.core.budget import dollars
from sylph.core.text import count
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.table import aligned
from sylph.prove.budget import Report, Wish, prove
from sylph.prove.till import Bill


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
    report = prove(Wish(agents=agents, processes=min(processes, agents), kills=kills, seed=seed), _progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        put_json({"ok": report.ok, "report": report})
    else:
        put("\n".join(_told(report)))
    return codes.OK.number if report.ok else codes.FAILED.number


def _progress(bill: Bill, cap: int, kills: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{dollars(bill.money)} of {dollars(cap)}, {count(kills, 'kill')}")


def _told(report: Report) -> list[str]:
    bill = report.bill
    rows = [
        ["cap", dollars(report.cap), f"{report.cap_tokens:,} tokens"],
        ["charged by the service", dollars(bill.money), f"{bill.tokens:,} tokens"],
        ["counted by Sylph", dollars(report.counted), f"{report.counted_tokens:,} tokens"],
        ["of it unknown", dollars(report.unknown), "counted at the most it can have been"],
    ]
    said = (
        f"{count(report.agents, 'agent')} in {report.processes} processes, {count(bill.calls, 'call')}; "
        f"{report.kills} killed with {count(report.killed_calls, 'call')} under way, "
        f"{bill.cut} answers broken off, {bill.refused} refused; "
        f"{report.stopped} stops at the cap; {report.seconds:.0f} s"
    )
    told = [*aligned(rows), "", said]
    told += [f"VIOLATED: {problem}" for problem in report.problems]
    return [*told, *([f"scratch: {report.scratch}"] if report.scratch else [])]
