"""`sylph prove secrets`: lets canaries loose, and shows which ways were tried and what held."""

import sys

import click

from sylph.core.text.formatting import count_noun
from sylph.features.prove.secrets.proof import LeakAttempt, SecretsProofOptions, SecretsProofReport, prove_secrets
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows
from sylph.interfaces.text.render import format_size, one_line

MAX_LEAKS = 5


@click.command()
@click.option("--off", is_flag=True, help="Without redaction: shows that the proof would find what is not hidden.")
@click.option("--only", default="", metavar="WAY", help="Only ways whose names hold this.")
@json_option
@click.pass_obj
def secrets(cli: CliContext, *, off: bool, only: str, as_json: bool) -> int:
    """Have secrets of every kind go through real turns in every way there is, and look for them in all that is left.

    \b
    They are made up for this, and so is the model. Every byte is looked through that was sent to the model and to
    services, and the database, its write-ahead log, exports, diagnoses, traces, journals of commands, copies for undo.
    """
    config = cli.config
    report = prove_secrets(
        config.home, config.environ.get("PATH", ""), SecretsProofOptions(only=only, enabled=not off), _show_progress
    )
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        rows = [
            {"name": one.name, "held": one.held, "kinds": one.kinds, "leaks": one.leaks, "failed": one.failed}
            for one in report.tried
        ]
        print_json({"ok": report.ok, "seconds": report.seconds, "tried": rows, "places": report.places})
    else:
        print_text("\n".join(_report_lines(report)))
    return exit_code.OK.number if report.ok else exit_code.FAILED.number


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{done} of {total}")


def _report_lines(report: SecretsProofReport) -> list[str]:
    held = sum(one.held for one in report.tried)
    values = sum(one.kinds for one in report.tried)
    looked = ", ".join(f"{name} {format_size(bytes)}" for name, bytes in report.places.items())
    told = [
        *align_rows([["TRIED", "KINDS", "HELD", ""], *map(_attempt_row, report.tried)]),
        "",
        f"Looked through: {looked}.",
        f"{count_noun(len(report.tried), 'way')} tried with {values} secrets, {held} held, {report.seconds:.0f} s",
    ]
    for one in report.tried:
        if not one.held:
            told += ["", f"BROKEN: {one.name}: {one.failed or count_noun(len(one.leaks), 'leak')}"]
            told += [f"  {one_line(leak, 200)}" for leak in one.leaks[:MAX_LEAKS]]
    return told


def _attempt_row(one: LeakAttempt) -> list[str]:
    return [one.name, str(one.kinds), "yes" if one.held else "NO", one_line(one.failed, 60)]
