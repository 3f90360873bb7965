"""`sylph doctor`: is everything there and in order? Each finding comes with what to do about it."""

import sys
from pathlib import Path

import click

from sylph.core.errors import SylphError
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.colours import paint_line
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.reports import doctor_checks
from sylph.interfaces.reports.doctor_checks import CheckGrade, DoctorFinding
from sylph.interfaces.text.render import TextSpan, TextStyle, one_line

STYLES: dict[CheckGrade, TextStyle] = {"ok": "ok", "warn": "warn", "fail": "bad"}


@click.command()
@json_option
@click.pass_obj
def command(cli: CliContext, *, as_json: bool) -> int:
    """Check Python, the store, the configuration, the model services and the programs that tools need."""
    findings = collect_findings(cli)
    failed = any(one.grade == "fail" for one in findings)
    if as_json:
        print_json({"ok": not failed, "findings": findings})
        return int(failed)
    colour = sys.stdout.isatty() and cli.base_config.terminal.colour
    for one in findings:
        mark = paint_line((TextSpan(f"{one.grade:<4}", STYLES[one.grade]),), colour=colour)
        print_text(f"{mark}  {one.what:<10}  {one_line(one.said, 400)}")
        for step in one.next:
            print_text(f"{'':18}→ {step}")
    return int(failed)


def collect_findings(cli: CliContext) -> list[DoctorFinding]:
    """Everything that can be looked at; what is broken hides nothing else."""
    findings = list(doctor_checks.check_machine(cli.base_config))
    try:
        findings.append(doctor_checks.check_config(cli.config))
    except SylphError as error:
        return [*findings, DoctorFinding("config", "fail", str(error), error.trouble.next)]
    try:
        return [*findings, *doctor_checks.check_rules(cli.config, Path.cwd()), *cli.run(doctor_checks.check_app)]
    except SylphError as error:
        return [*findings, DoctorFinding("store", "fail", str(error), error.trouble.next)]
