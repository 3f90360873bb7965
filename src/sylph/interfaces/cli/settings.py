"""`sylph config`: what is configured, where it comes from, and how to change it."""

import sys
from collections.abc import Callable

import click
import msgspec

from sylph.config import Config, Settings
from sylph.config.keys import effective, is_secret, shown, type_at
from sylph.core.errors import UserError
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.editing import by_editor
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option

EMPTY = "# Sylph's configuration; `sylph config schema` and the handbook name every key.\n"
key_argument = click.argument("key")


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, door: Door, *, as_json: bool) -> int | None:
    """Show the configuration, and where each value comes from. Secrets are masked."""
    if context.invoked_subcommand:
        return None
    config = door.config
    values = effective(config.settings)
    if as_json:
        return put_json({key: _told(config, key, value) for key, value in values.items()})
    rows = [[key, shown(key, value) or "-", _origin(config, key)] for key, value in values.items()]
    put_table([["KEY", "VALUE", "FROM"], *rows], drop=(2,))
    return 0


def _told(config: Config, key: str, value: object) -> dict[str, object]:
    told = shown(key, value) if is_secret(key) else value
    return {"value": told, "from": _origin(config, key)}


def _origin(config: Config, key: str) -> str:
    return config.origins.get(key, "default")


@command.command()
@click.pass_obj
def path(door: Door) -> int:
    """Print where the config file is."""
    put(str(door.place.file))
    return 0


@command.command()
@key_argument
@json_option
@click.pass_obj
def get(door: Door, key: str, *, as_json: bool) -> int:
    """Print one value as it is in effect. Secrets are masked."""
    values = effective(door.config.settings)
    if key not in values:
        type_at(key)
        inner = {name: value for name, value in values.items() if name.startswith(f"{key}.")}
        if not inner:
            raise UserError(f"{key!r} is not set.", kind="not_found", next=["sylph config"])
        return put_json({name: shown(name, value) for name, value in inner.items()})
    value = values[key]
    if as_json:
        return put_json(_told(door.config, key, value))
    put(value if isinstance(value, str) and not is_secret(key) else shown(key, value))
    return 0


@command.command("set")
@key_argument
@click.argument("value")
@json_option
@click.pass_obj
def set_(door: Door, key: str, value: str, *, as_json: bool) -> int:
    """Set KEY in the config file. It is checked first; comments stay."""
    from sylph.interfaces.settings import change

    return _rewrite(door, lambda text: change(text, key, value), f"{key} is set", key=key if as_json else "")


@command.command()
@key_argument
@click.pass_obj
def unset(door: Door, key: str) -> int:
    """Remove KEY from the config file."""
    from sylph.interfaces.settings import remove

    return _rewrite(door, lambda text: remove(text, key), f"{key} is not set any more")


@command.command()
@click.pass_obj
def edit(door: Door) -> int:
    """Open the config file in your editor; what comes back is checked before it is kept."""
    editor = door.place.terminal.editor or "vi"
    return _rewrite(door, lambda text: _edited(text or EMPTY, editor), "kept")


@command.command()
def schema() -> int:
    """Print the JSON Schema of the config file."""
    return put_json(msgspec.json.schema(Settings))


def _rewrite(door: Door, change: Callable[[str], str], done: str, *, key: str = "") -> int:
    """Changes the file and says so; with a `key` as JSON."""
    from sylph.interfaces.settings import write, wrongs

    file = door.place.file
    text = change(file.read_text(encoding="utf-8") if file.exists() else "")
    write(file, text)
    if key:
        put_json({"key": key, "file": str(file)})
    else:
        put(f"{file}: {done}.")
    for fault in wrongs(text):
        sys.stderr.write(f"sylph: still wrong: {fault.key}: {fault.message}\n")
    return 0


def _edited(text: str, editor: str) -> str:
    """The text as the editor leaves it. It is checked here; what was written is not thrown away if it is wrong."""
    from sylph.interfaces.settings import checked

    draft = by_editor(text, editor, ".toml")
    try:
        kept = checked(draft.read_text(encoding="utf-8"), _readable(text))
    except UserError as error:
        raise UserError(str(error), kind="config", next=[f"your text is in {draft}", "sylph config edit"]) from error
    draft.unlink()
    return kept


def _readable(text: str) -> str:
    """The text, or nothing where it is not even TOML: then all of what comes back must be right."""
    from sylph.interfaces.settings import wrongs

    try:
        wrongs(text)
    except UserError:
        return ""
    return text
