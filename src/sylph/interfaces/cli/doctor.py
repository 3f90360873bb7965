"""`sylph doctor`: is everything there and in order? Each finding comes with what to do about it."""

import sys
from pathlib import Path

import click

from sylph.core.errors import SylphError
from sylph.interfaces import checks
from sylph.interfaces.checks import Finding, Grade
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import paint
from sylph.interfaces.render import Span, Style, flat

STYLES: dict[Grade, Style] = {"ok": "ok", "warn": "warn", "fail": "bad"}


@click.command()
@json_option
@click.pass_obj
def command(door: Door, *, as_json: bool) -> int:
    """Check Python, the store, the configuration, the model services and the programs that tools need."""
    findings = examine(door)
    failed = any(one.grade == "fail" for one in findings)
    if as_json:
        put_json({"ok": not failed, "findings": findings})
        return int(failed)
    colour = sys.stdout.isatty() and door.place.terminal.colour
    for one in findings:
        mark = paint((Span(f"{one.grade:<4}", STYLES[one.grade]),), colour=colour)
        put(f"{mark}  {one.what:<10}  {flat(one.said, 400)}")
        for step in one.next:
            put(f"{'':18}→ {step}")
    return int(failed)


def examine(door: Door) -> list[Finding]:
    """Everything that can be looked at; what is broken hides nothing else."""
    findings = list(checks.machine(door.place))
    try:
        findings.append(checks.config(door.config))
    except SylphError as error:
        return [*findings, Finding("config", "fail", str(error), error.trouble.next)]
    try:
        return [*findings, *checks.rules(door.config, Path.cwd()), *door.run(checks.program)]
    except SylphError as error:
        return [*findings, Finding("store", "fail", str(error), error.trouble.next)]
