"""The parts of the handbook that are made from the declarations, so that they cannot drift from them."""

import re
from collections.abc import Callable, Iterator, Sequence

import click

from sylph.config.load import SETTING_VARIABLES
from sylph.config.setting_path import list_settings
from sylph.interfaces.cli.chat import slash_commands
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.lazy_commands import COMMANDS
from sylph.interfaces.cli.main import sylph
from sylph.providers.vendors.table import VENDORS, Vendor

# What the API has beside `/api/v1` and `/v1`, and subjects that are not called as they are written.
OTHER_PATHS = ("/metrics", "/openapi.json", "/docs", "/redoc")
TITLES = {"openai": "OpenAI's dialects", "schema": "The documents", "acts": "What is done to a turn"}
BLOCK = re.compile(r"(<!-- made from the code: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_blocks(page: str) -> str:
    """The page with every block made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{BLOCK_MAKERS[found[2]]()}\n\n{found[3]}", page)


def config_table() -> str:
    rows = [
        [f"`{key.name}`", key.type.replace("|", ", "), _code_text(key.default), key.help] for key in list_settings()
    ]
    return _markdown_table(["key", "type", "default", "meaning"], rows)


def variable_table() -> str:
    return _markdown_table(
        ["variable", "key"], [[f"`{variable}`", f"`{key}`"] for variable, key in SETTING_VARIABLES.items()]
    )


def provider_table() -> str:
    rows = [[f"`{row.name}`", row.title, row.dialect, f"`{row.base_url}`", _key_text(row)] for row in VENDORS]
    return _markdown_table(["name", "provider", "dialect", "address", "key"], rows)


def _key_text(row: Vendor) -> str:
    if row.variant_of:
        return f"that of `{row.variant_of}`"
    if row.auth_method in ("github", "chatgpt"):
        return f"`sylph connect {row.name}`"
    named = " or ".join(f"`{variable}`" for variable in row.key_variables)
    return f"none, or {named}" if row.auth_method == "none" else named


def code_table() -> str:
    return _markdown_table(["code", "meaning"], [[str(code.number), code.meaning] for code in exit_code.CODES])


def slash_table() -> str:
    return _markdown_table(
        ["command", "what it does"], [[f"`{each.usage}`", each.help] for each in slash_commands.COMMANDS.values()]
    )


def route_tables() -> str:
    """What the server can be asked, by subject: from the same routes as its OpenAPI document."""
    from sylph.interfaces.http.api.route_table import ALL_ROUTES

    tables: dict[str, list[list[str]]] = {}
    for subject in ALL_ROUTES:
        tables.setdefault(subject.subject, []).extend(
            [f"`{each.method}`", f"`{each.openapi_path}`", each.scope_text.replace("`", "") or "-", each.summary]
            for each in subject.declared
            if each.path.startswith(("/api/", "/v1/")) or each.path in OTHER_PATHS
        )
    tables["streams"].append(["WebSocket", "`/ws`", "read", "The same events as a stream, with commands in"])
    head = ["method", "path", "scope", "what it does"]
    return "\n\n".join(
        f"### {TITLES.get(name, name[0].upper() + name[1:])}\n\n{_markdown_table(head, rows)}"
        for name, rows in tables.items()
        if rows
    )


def command_list() -> str:
    return "\n\n".join(_describe_command(path, command) for path, command in _walk_commands())


def _walk_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(sylph, info_name="sylph")
    for name, entry in COMMANDS.items():
        command = sylph.get_command(context, name)
        if entry.hidden or command is None:
            continue
        yield f"sylph {name}", command
        if isinstance(command, click.Group):
            yield from ((f"sylph {name} {inner}", each) for inner, each in command.commands.items())


def _describe_command(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
    options = "\n".join(f"- `{name}`: {help}" for name, help in records if help and "--help" not in name)
    text = re.sub(r"\s+", " ", (command.help or "").replace("\b", "")).strip()
    return "\n\n".join(filter(None, [f"### `{usage}`", text, options]))


def _code_text(text: str) -> str:
    return f"`{text}`" if text else ""


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


BLOCK_MAKERS: dict[str, Callable[[], str]] = {
    "config": config_table,
    "variables": variable_table,
    "providers": provider_table,
    "codes": code_table,
    "slash": slash_table,
    "commands": command_list,
    "routes": route_tables,
}
