"""`sylph roles`: which model does what."""

import sys

import click

from sylph.app import App
from sylph.interfaces.assigned import Assigned, assigned
from sylph.interfaces.cli.door import Door, put_json, put_table
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.picker import find
from sylph.interfaces.render import flat


@click.command()
@click.argument("session", default="")
@json_option
@click.pass_obj
def command(door: Door, session: str, *, as_json: bool) -> int:
    """List the roles with their models, as configured; with SESSION, as they are there.

    \b
    sylph config set roles.background ollama/llama3.2
    sylph config set roles.fallback openrouter/auto,ollama/llama3.2
    sylph run --role judge=anthropic/claude-opus-5 "..."
    sylph run -m @background "..."
    """

    async def work(app: App) -> list[Assigned]:
        return await assigned(app, await find(app.runtime, session) if session else None)

    rows = door.run(work)
    if as_json:
        return put_json(rows)
    table = [[each.role, flat(each.model) or "-", each.source or "not set", each.work] for each in rows]
    put_table([["ROLE", "MODEL", "FROM", "WORK"], *table], drop=(3, 2))
    for each in rows:
        for model in each.unknown:
            sys.stderr.write(f"sylph: {each.role}: there is no provider for {flat(model)}\n")
    return 0
