"""`sylph prove crash`: kills Sylph at every durable boundary, and shows what came of it."""

import sys

import click

from sylph.core.text.formatting import count_noun
from sylph.features.prove.crash.proof import KINDS, CrashProofOptions, CrashProofReport, prove_crash
from sylph.features.prove.crash.trial import CrashOutcome
from sylph.features.prove.scenario.scenarios import SCENARIOS
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows

BAR_WIDTH = 30


@click.command()
@click.option("--points", type=click.IntRange(1), help="Try only this many boundaries, some of each kind.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Begin no new trial after this time.")
@click.option("--seed", type=int, default=1, show_default=True, help="What is left to chance, the same way again.")
@click.option("--only", default="", metavar="SCENARIO:KIND:N", help="Exactly one boundary.")
@json_option
@click.pass_obj
def crash(cli: CliContext, points: int | None, seconds: float | None, seed: int, only: str, *, as_json: bool) -> int:
    """Kill Sylph at every durable boundary, recover, and check that nothing was lost, done twice or invented.

    \b
    Without a limit every boundary is tried, which takes minutes. It works in a scratch folder, which stays
    only if a check failed.
    """
    wish = CrashProofOptions(points=points or 0, seconds=seconds or 0.0, seed=seed, only=only)
    report = prove_crash(wish, cli.base_config.environ, _show_progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        print_json({"ok": report.ok, **_report_data(report)})
    else:
        print_text("\n".join(_report_lines(report)))
    return exit_code.OK.number if report.ok else exit_code.FAILED.number


def _show_progress(done: int, total: int, wrong: int) -> None:
    if sys.stderr.isatty():
        filled = BAR_WIDTH * done // total
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        sys.stderr.write(f"\r\x1b[K{bar} {done} of {total}" + (f", {wrong} WRONG" if wrong else ""))
    elif done == total or done % max(total // 10, 1) == 0:
        sys.stderr.write(f"{done} of {total} boundaries, {wrong} wrong\n")


def _report_data(report: CrashProofReport) -> dict[str, object]:
    return {
        "tried": report.tried,
        "survived": report.survived,
        "unknown": report.unknown,
        "unreached": report.unreached,
        "left_out": report.left_out,
        "seconds": round(report.seconds, 1),
        "seed": report.seed,
        "strace": report.strace,
        "rows": report.rows,
        "failures": [
            {
                "case": each.case.name,
                "problems": each.problems,
                "scratch": each.scratch,
                "again": _rerun_command(each, report),
            }
            for each in report.failures
        ],
    }


def _report_lines(report: CrashProofReport) -> list[str]:
    told = [*_boundary_table(report), ""]
    told.append(
        f"{count_noun(report.tried, 'kill')}, {report.survived} survived; "
        f"{count_noun(report.unknown, 'outcome')} unknown; seed {report.seed}; {report.seconds:.0f} s"
    )
    if report.unknown:
        told.append("Unknown is the truth where the runner itself was killed: it is told, and not run again.")
    if report.unreached:
        told.append(f"{report.unreached} did not come up this time, and do not count.")
    if report.left_out:
        told.append(f"{report.left_out} left out: the time was up.")
    if not report.strace:
        told.append("No strace here: single system calls were not tried.")
    for each in report.failures:
        told += ["", f"VIOLATED at {each.case.name}", *(f"  {problem}" for problem in each.problems)]
        told += [f"  scratch: {each.scratch}", f"  again:   {_rerun_command(each, report)}"]
    return told


def _boundary_table(report: CrashProofReport) -> list[str]:
    """Kinds of boundaries against scenarios: how many were survived, of how many."""
    cells = {(row.kind, row.scenario): row for row in report.rows}
    kinds = [kind for kind in KINDS if any(row.kind == kind for row in report.rows)]
    scenarios = [name for name in SCENARIOS if any(row.scenario == name for row in report.rows)]
    rows = [["KILLED AT", *scenarios, "UNKNOWN", "VIOLATED"]]
    for kind in kinds:
        mine = [row for row in report.rows if row.kind == kind]
        told = [cells.get((kind, name)) for name in scenarios]
        sums = [str(sum(row.unknown for row in mine)), str(sum(row.violations for row in mine))]
        rows.append([kind, *(f"{row.survived}/{row.tried}" if row and row.tried else "-" for row in told), *sums])
    return align_rows(rows)


def _rerun_command(outcome: CrashOutcome, report: CrashProofReport) -> str:
    return f"sylph prove crash --only {outcome.case.name} --seed {report.seed}"
