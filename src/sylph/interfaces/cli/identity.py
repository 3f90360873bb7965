"""`sylph identity`: who Sylph is, which rules it keeps, and where it runs."""

import sys
import time
from pathlib import Path

import click

from sylph.core.errors import UserError
from sylph.faculties.identity import LONGEST, PARTS
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.editing import by_editor
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.render import size
from sylph.interfaces.versions import Versions
from sylph.interfaces.written import fits, written

name_argument = click.argument("name")


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, door: Door, *, as_json: bool) -> int | None:
    """Show and change the files that every session is told: soul, rules, deployment.

    \b
    sylph identity edit soul
    sylph identity set rules < RULES.md
    sylph identity restore soul
    """
    if context.invoked_subcommand:
        return None
    rows = [_told(door, name) for name in PARTS]
    if as_json:
        return put_json(rows)
    table = [[str(row["name"]), str(row["characters"] or "-"), str(row["file"]), str(row["about"])] for row in rows]
    put_table([["NAME", "CHARACTERS", "FILE", "WHAT IT SAYS"], *table], drop=(3,))
    return 0


def _told(door: Door, name: str) -> dict[str, object]:
    file = written(door.place, name)
    text = file.text()
    about = PARTS[name].about
    return {
        "name": name,
        "file": str(file.file),
        "there": text is not None,
        "characters": len(text or ""),
        "about": about,
    }


@command.command()
@name_argument
@json_option
@click.pass_obj
def show(door: Door, name: str, *, as_json: bool) -> int:
    """Print what soul, rules or deployment says."""
    file = written(door.place, name)
    text = file.text()
    if as_json:
        return put_json({**_told(door, name), "text": text or ""})
    if text is None:
        raise UserError(f"There is no {file.file}.", kind="not_found", next=[f"sylph identity edit {name}"])
    sys.stdout.write(text)
    if len(text) > LONGEST:
        sys.stderr.write(f"sylph: it has {len(text):,} characters; models are told the first {LONGEST:,}\n")
    return 0


@command.command("set")
@name_argument
@click.argument("file", default="-", type=click.Path(path_type=Path))
@click.pass_obj
def set_(door: Door, name: str, file: Path) -> int:
    """Write it anew, from FILE or from stdin."""
    target = written(door.place, name)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}", next=["Markdown, in UTF-8"]) from error
    return _write(target, fits(text))


@command.command()
@name_argument
@click.pass_obj
def edit(door: Door, name: str) -> int:
    """Open it in your editor."""
    target = written(door.place, name)
    before = target.text()
    draft = by_editor(before or f"<!-- {PARTS[name].about} -->\n", door.place.terminal.editor or "vi", ".md")
    text = draft.read_text(encoding="utf-8", errors="replace")
    if text == (before or ""):
        put("Nothing was changed.")
    else:
        try:
            _write(target, fits(text))
        except UserError as error:
            raise UserError(str(error), kind=error.trouble.kind, next=[f"your text is in {draft}"]) from error
    draft.unlink()
    return 0


@command.command()
@name_argument
@click.pass_obj
def remove(door: Door, name: str) -> int:
    """Take it away; `restore` brings it back."""
    target = written(door.place, name)
    if target.text() is None:
        raise UserError(f"There is no {target.file}.", kind="not_found", next=["sylph identity"])
    target.write(None)
    put(f"{target.file} is removed: sylph identity restore {name}  brings it back.")
    return 0


@command.command()
@name_argument
@json_option
@click.pass_obj
def history(door: Door, name: str, *, as_json: bool) -> int:
    """List its earlier versions, the newest first."""
    found = written(door.place, name).all()
    if as_json:
        return put_json(found)
    if not found:
        put("There is no earlier version.")
        return 0
    rows = [[one.id, _moment(one.replaced), size(one.bytes)] for one in found]
    put_table([["VERSION", "UNTIL", "SIZE"], *rows])
    return 0


@command.command()
@name_argument
@click.argument("version", default="")
@click.pass_obj
def restore(door: Door, name: str, version: str) -> int:
    """Make an earlier VERSION count again; the newest one if none is named."""
    target = written(door.place, name)
    known = target.all()
    if not known:
        raise UserError("There is no earlier version.", kind="not_found", next=[f"sylph identity show {name}"])
    return _write(target, target.get(version or known[0].id))


def _write(target: Versions, text: str) -> int:
    target.write(text)
    put(f"{target.file}: kept. Sessions are told of it before their next turn.")
    return 0


def _moment(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
