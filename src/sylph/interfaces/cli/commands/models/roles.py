"""`sylph roles`: which model does what."""

import sys

import click

from sylph.app import App
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import find_session
from sylph.interfaces.reports.role_report import RoleAssignment, list_role_assignments
from sylph.interfaces.text.render import one_line


@click.command()
@click.argument("session", default="")
@json_option
@click.pass_obj
def command(cli: CliContext, session: str, *, as_json: bool) -> int:
    """List the roles with their models, as configured; with SESSION, as they are there.

    \b
    sylph config set roles.background ollama/llama3.2
    sylph config set roles.fallback openrouter/auto,ollama/llama3.2
    sylph run --role judge=anthropic/claude-opus-5 "..."
    sylph run -m @background "..."
    """

    async def work(app: App) -> list[RoleAssignment]:
        return await list_role_assignments(app, await find_session(app.runtime, session) if session else None)

    rows = cli.run(work)
    if as_json:
        return print_json(rows)
    table = [[each.role, one_line(each.model) or "-", each.source or "not set", each.work] for each in rows]
    print_table([["ROLE", "MODEL", "FROM", "WORK"], *table], drop=(3, 2))
    for each in rows:
        for model in each.unknown:
            sys.stderr.write(f"sylph: {each.role}: there is no provider for {one_line(model)}\n")
    return 0
