"""`sylph prove secrets`: lets canaries loose, and shows which ways were tried and what held."""

import sys

import click

from sylph.core.text import count
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.table import aligned
from sylph.interfaces.render import flat, size
from sylph.prove.secrets import Report, Tried, Wish, prove

SHOWN = 5


@click.command()
@click.option("--off", is_flag=True, help="Without redaction: shows that the proof would find what is not hidden.")
@click.option("--only", default="", metavar="WAY", help="Only ways whose names hold this.")
@json_option
@click.pass_obj
def secrets(door: Door, *, off: bool, only: str, as_json: bool) -> int:
    """Have secrets of every kind go through real turns in every way there is, and look for them in all that is left.

    \b
    They are made up for this, and so is the model. Every byte is looked through that was sent to the model and to
    services, and the database, its write-ahead log, exports, diagnoses, traces, journals of commands, copies for undo.
    """
    config = door.config
    report = prove(config.home, config.environ.get("PATH", ""), Wish(only=only, enabled=not off), _progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        rows = [
            {"name": one.name, "held": one.held, "kinds": one.kinds, "leaks": one.leaks, "failed": one.failed}
            for one in report.tried
        ]
        put_json({"ok": report.ok, "seconds": report.seconds, "tried": rows, "places": report.places})
    else:
        put("\n".join(_told(report)))
    return codes.OK.number if report.ok else codes.FAILED.number


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{done} of {total}")


def _told(report: Report) -> list[str]:
    held = sum(one.held for one in report.tried)
    values = sum(one.kinds for one in report.tried)
    looked = ", ".join(f"{name} {size(bytes)}" for name, bytes in report.places.items())
    told = [
        *aligned([["TRIED", "KINDS", "HELD", ""], *map(_row, report.tried)]),
        "",
        f"Looked through: {looked}.",
        f"{count(len(report.tried), 'way')} tried with {values} secrets, {held} held, {report.seconds:.0f} s",
    ]
    for one in report.tried:
        if not one.held:
            told += ["", f"BROKEN: {one.name}: {one.failed or count(len(one.leaks), 'leak')}"]
            told += [f"  {flat(leak, 200)}" for leak in one.leaks[:SHOWN]]
    return told


def _row(one: Tried) -> list[str]:
    return [one.name, str(one.kinds), "yes" if one.held else "NO", flat(one.failed, 60)]
