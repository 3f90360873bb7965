"""`sylph config`: what is configured, where it comes from, and how to change it."""

import sys
from collections.abc import Callable

import click
import msgspec

from sylph.config import Config, Settings
from sylph.config.setting_path import effective_values, format_value, is_secret, type_at
from sylph.core.errors import UserError
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.external_editor import edit_in_editor

EMPTY_CONFIG = "# Sylph's configuration; `sylph config schema` and the handbook name every key.\n"
key_argument = click.argument("key")


@click.group(cls=SuggestingGroup, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, cli: CliContext, *, as_json: bool) -> int | None:
    """Show the configuration, and where each value comes from. Secrets are masked."""
    if context.invoked_subcommand:
        return None
    config = cli.config
    values = effective_values(config.settings)
    if as_json:
        return print_json({key: _value_facts(config, key, value) for key, value in values.items()})
    rows = [[key, format_value(key, value) or "-", _value_origin(config, key)] for key, value in values.items()]
    print_table([["KEY", "VALUE", "FROM"], *rows], drop=(2,))
    return 0


def _value_facts(config: Config, key: str, value: object) -> dict[str, object]:
    told = format_value(key, value) if is_secret(key) else value
    return {"value": told, "from": _value_origin(config, key)}


def _value_origin(config: Config, key: str) -> str:
    return config.origins.get(key, "default")


@command.command()
@click.pass_obj
def path(cli: CliContext) -> int:
    """Print where the config file is."""
    print_text(str(cli.base_config.file))
    return 0


@command.command()
@key_argument
@json_option
@click.pass_obj
def get(cli: CliContext, key: str, *, as_json: bool) -> int:
    """Print one value as it is in effect. Secrets are masked."""
    values = effective_values(cli.config.settings)
    if key not in values:
        type_at(key)
        inner = {name: value for name, value in values.items() if name.startswith(f"{key}.")}
        if not inner:
            raise UserError(f"{key!r} is not set.", kind="not_found", next=["sylph config"])
        return print_json({name: format_value(name, value) for name, value in inner.items()})
    value = values[key]
    if as_json:
        return print_json(_value_facts(cli.config, key, value))
    print_text(value if isinstance(value, str) and not is_secret(key) else format_value(key, value))
    return 0


@command.command("set")
@key_argument
@click.argument("value")
@json_option
@click.pass_obj
def set_value(cli: CliContext, key: str, value: str, *, as_json: bool) -> int:
    """Set KEY in the config file. It is checked first; comments stay."""
    from sylph.interfaces.actions.config_file import change_setting

    return _rewrite_file(
        cli, lambda text: change_setting(text, key, value), f"{key} is set", key=key if as_json else ""
    )


@command.command()
@key_argument
@click.pass_obj
def unset(cli: CliContext, key: str) -> int:
    """Remove KEY from the config file."""
    from sylph.interfaces.actions.config_file import remove_setting

    return _rewrite_file(cli, lambda text: remove_setting(text, key), f"{key} is not set any more")


@command.command()
@click.pass_obj
def edit(cli: CliContext) -> int:
    """Open the config file in your editor; what comes back is checked before it is kept."""
    editor = cli.base_config.terminal.editor or "vi"
    return _rewrite_file(cli, lambda text: _edit_config(text or EMPTY_CONFIG, editor), "kept")


@command.command()
def schema() -> int:
    """Print the JSON Schema of the config file."""
    return print_json(msgspec.json.schema(Settings))


def _rewrite_file(cli: CliContext, change: Callable[[str], str], done: str, *, key: str = "") -> int:
    """Changes the file and says so; with a `key` as JSON."""
    from sylph.interfaces.actions.config_file import list_config_faults, write_config

    file = cli.base_config.file
    text = change(file.read_text(encoding="utf-8") if file.exists() else "")
    write_config(file, text)
    if key:
        print_json({"key": key, "file": str(file)})
    else:
        print_text(f"{file}: {done}.")
    for fault in list_config_faults(text):
        sys.stderr.write(f"sylph: still wrong: {fault.key}: {fault.message}\n")
    return 0


def _edit_config(text: str, editor: str) -> str:
    """The text as the editor leaves it. It is checked here; what was written is not thrown away if it is wrong."""
    from sylph.interfaces.actions.config_file import validate_config

    draft = edit_in_editor(text, editor, ".toml")
    try:
        kept = validate_config(draft.read_text(encoding="utf-8"), _text_if_toml(text))
    except UserError as error:
        raise UserError(str(error), kind="config", next=[f"your text is in {draft}", "sylph config edit"]) from error
    draft.unlink()
    return kept


def _text_if_toml(text: str) -> str:
    """The text, or nothing where it is not even TOML: then all of what comes back must be right."""
    from sylph.interfaces.actions.config_file import list_config_faults

    try:
        list_config_faults(text)
    except UserError:
        return ""
    return text
