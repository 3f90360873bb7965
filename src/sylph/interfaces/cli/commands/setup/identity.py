"""`sylph identity`: who Sylph is, which rules it keeps, and where it runs."""

import sys
import time
from pathlib import Path

import click

from sylph.core.errors import UserError
from sylph.features.identity.identity_notes import IDENTITY_FILES, MAX_LENGTH
from sylph.interfaces.actions.file_versions import VersionedFile
from sylph.interfaces.actions.identity_files import open_identity_file, validate_identity_text
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.external_editor import edit_in_editor
from sylph.interfaces.text.render import format_size

name_argument = click.argument("name")


@click.group(cls=SuggestingGroup, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, cli: CliContext, *, as_json: bool) -> int | None:
    """Show and change the files that every session is told: soul, rules, deployment.

    \b
    sylph identity edit soul
    sylph identity set rules < RULES.md
    sylph identity restore soul
    """
    if context.invoked_subcommand:
        return None
    rows = [_file_facts(cli, name) for name in IDENTITY_FILES]
    if as_json:
        return print_json(rows)
    table = [[str(row["name"]), str(row["characters"] or "-"), str(row["file"]), str(row["about"])] for row in rows]
    print_table([["NAME", "CHARACTERS", "FILE", "WHAT IT SAYS"], *table], drop=(3,))
    return 0


def _file_facts(cli: CliContext, name: str) -> dict[str, object]:
    file = open_identity_file(cli.base_config, name)
    text = file.read_text()
    about = IDENTITY_FILES[name].about
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
def show(cli: CliContext, name: str, *, as_json: bool) -> int:
    """Print what soul, rules or deployment says."""
    file = open_identity_file(cli.base_config, name)
    text = file.read_text()
    if as_json:
        return print_json({**_file_facts(cli, name), "text": text or ""})
    if text is None:
        raise UserError(f"There is no {file.file}.", kind="not_found", next=[f"sylph identity edit {name}"])
    sys.stdout.write(text)
    if len(text) > MAX_LENGTH:
        sys.stderr.write(f"sylph: it has {len(text):,} characters; models are told the first {MAX_LENGTH:,}\n")
    return 0


@command.command("set")
@name_argument
@click.argument("file", default="-", type=click.Path(path_type=Path))
@click.pass_obj
def set_text(cli: CliContext, name: str, file: Path) -> int:
    """Write it anew, from FILE or from stdin."""
    target = open_identity_file(cli.base_config, name)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}", next=["Markdown, in UTF-8"]) from error
    return _save_text(target, validate_identity_text(text))


@command.command()
@name_argument
@click.pass_obj
def edit(cli: CliContext, name: str) -> int:
    """Open it in your editor."""
    target = open_identity_file(cli.base_config, name)
    before = target.read_text()
    draft = edit_in_editor(
        before or f"<!-- {IDENTITY_FILES[name].about} -->\n", cli.base_config.terminal.editor or "vi", ".md"
    )
    text = draft.read_text(encoding="utf-8", errors="replace")
    if text == (before or ""):
        print_text("Nothing was changed.")
    else:
        try:
            _save_text(target, validate_identity_text(text))
        except UserError as error:
            raise UserError(str(error), kind=error.trouble.kind, next=[f"your text is in {draft}"]) from error
    draft.unlink()
    return 0


@command.command()
@name_argument
@click.pass_obj
def remove(cli: CliContext, name: str) -> int:
    """Take it away; `restore` brings it back."""
    target = open_identity_file(cli.base_config, name)
    if target.read_text() is None:
        raise UserError(f"There is no {target.file}.", kind="not_found", next=["sylph identity"])
    target.write(None)
    print_text(f"{target.file} is removed: sylph identity restore {name}  brings it back.")
    return 0


@command.command()
@name_argument
@json_option
@click.pass_obj
def history(cli: CliContext, name: str, *, as_json: bool) -> int:
    """List its earlier versions, the newest first."""
    found = open_identity_file(cli.base_config, name).list_versions()
    if as_json:
        return print_json(found)
    if not found:
        print_text("There is no earlier version.")
        return 0
    rows = [[one.id, _format_moment(one.replaced), format_size(one.bytes)] for one in found]
    print_table([["VERSION", "UNTIL", "SIZE"], *rows])
    return 0


@command.command()
@name_argument
@click.argument("version", default="")
@click.pass_obj
def restore(cli: CliContext, name: str, version: str) -> int:
    """Make an earlier VERSION count again; the newest one if none is named."""
    target = open_identity_file(cli.base_config, name)
    known = target.list_versions()
    if not known:
        raise UserError("There is no earlier version.", kind="not_found", next=[f"sylph identity show {name}"])
    return _save_text(target, target.read_version(version or known[0].id))


def _save_text(target: VersionedFile, text: str) -> int:
    target.write(text)
    print_text(f"{target.file}: kept. Sessions are told of it before their next turn.")
    return 0


def _format_moment(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
