"""`sylph prove sandbox`: tries to break out, and shows what was tried and what held."""

import sys

import click

from sylph.compose.engine import build_sandbox_policy
from sylph.core.text.formatting import count_noun
from sylph.features.prove.sandbox.proof import EscapeAttempt, SandboxProofReport, prove_sandbox
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows
from sylph.interfaces.text.render import one_line


@click.command()
@click.option("--layer", type=click.Choice(("bwrap", "landlock")), help="This layer instead of the best one there is.")
@json_option
@click.pass_obj
def sandbox(cli: CliContext, layer: str | None, *, as_json: bool) -> int:
    """Try to break out of the sandbox in all known ways, as a command of the agent would, and show what held.

    \b
    It works in a scratch folder with secrets, processes and services of its own, and reaches out to nobody.
    Where this machine has no sandbox nothing is tried, and the exit code says so.
    """
    config = cli.config
    report = prove_sandbox(build_sandbox_policy(config, layer or ""), config.home, dict(config.environ), _show_progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        rows = [{"name": one.name, "held": one.held, "expected": one.expected, "got": one.got} for one in report.tried]
        print_json(
            {"ok": report.ok, "layer": report.layer, "said": report.said, "seconds": report.seconds, "tried": rows}
        )
    else:
        print_text("\n".join(_report_lines(report)))
    return exit_code.OK.number if report.ok else exit_code.FAILED.number


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty() and total:
        sys.stderr.write(f"\r\x1b[K{done} of {total}")


def _report_lines(report: SandboxProofReport) -> list[str]:
    if not report.tried:
        return [f"Nothing was tried: {report.said}."]
    rows = [["TRIED", "HELD", ""], *(_attempt_row(one) for one in report.tried)]
    held = sum(one.held for one in report.tried)
    wrong = [one for one in report.tried if one.wrong]
    known = len(report.tried) - held - len(wrong)
    told = [
        *align_rows(rows),
        "",
        f"{report.said}: {count_noun(len(report.tried), 'way')} tried, {held} held, {report.seconds:.0f} s",
    ]
    if known:
        told.append(f"{known} did not hold, as is known of this layer: it is the weaker one.")
    for one in wrong:
        told += ["", f"BROKEN: {one.name}: {one.got}", f"  {one_line(one.said, 300)}"]
    return told


def _attempt_row(one: EscapeAttempt) -> list[str]:
    said = "" if one.held else f"{one.got}" if one.wrong else f"{one.got} (known of this layer)"
    return [one.name, "yes" if one.held else "NO", said]
