"""`sylph prove sandbox`: tries to break out, and shows what was tried and what held."""

import sys

import click

from sylph.core.text import count
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.table import aligned
from sylph.interfaces.render import flat
from sylph.prove.sandbox import Report, Tried, prove
from sylph.wiring import terms_of


@click.command()
@click.option("--layer", type=click.Choice(("bwrap", "landlock")), help="This layer instead of the best one there is.")
@json_option
@click.pass_obj
def sandbox(door: Door, layer: str | None, *, as_json: bool) -> int:
    """Try to break out of the sandbox in all known ways, as a command of the agent would, and show what held.

    \b
    It works in a scratch folder with secrets, processes and services of its own, and reaches out to nobody.
    Where this machine has no sandbox nothing is tried, and the exit code says so.
    """
    config = door.config
    report = prove(terms_of(config, layer or ""), config.home, dict(config.environ), _progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        rows = [{"name": one.name, "held": one.held, "expected": one.expected, "got": one.got} for one in report.tried]
        put_json(
            {"ok": report.ok, "layer": report.layer, "said": report.said, "seconds": report.seconds, "tried": rows}
        )
    else:
        put("\n".join(_told(report)))
    return codes.OK.number if report.ok else codes.FAILED.number


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() and total:
        sys.stderr.write(f"\r\x1b[K{done} of {total}")


def _told(report: Report) -> list[str]:
    if not report.tried:
        return [f"Nothing was tried: {report.said}."]
    rows = [["TRIED", "HELD", ""], *(_row(one) for one in report.tried)]
    held = sum(one.held for one in report.tried)
    wrong = [one for one in report.tried if one.wrong]
    known = len(report.tried) - held - len(wrong)
    told = [
        *aligned(rows),
        "",
        f"{report.said}: {count(len(report.tried), 'way')} tried, {held} held, {report.seconds:.0f} s",
    ]
    if known:
        told.append(f"{known} did not hold, as is known of this layer: it is the weaker one.")
    for one in wrong:
        told += ["", f"BROKEN: {one.name}: {one.got}", f"  {flat(one.said, 300)}"]
    return told


def _row(one: Tried) -> list[str]:
    said = "" if one.held else f"{one.got}" if one.wrong else f"{one.got} (known of this layer)"
    return [one.name, "yes" if one.held else "NO", said]
