"""`sylph roles`: which model does what."""

import sys
from typing import Any

import click

from sylph.app import App
from sylph.core.errors import NoModel
from sylph.engine.routes import ALONE, FALLBACK, MAIN, ROLES
from sylph.interfaces.cli.door import Door, put_json, put_table
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.picker import find
from sylph.interfaces.render import flat

WORK = {
    MAIN: "the conversation",
    "scout": "looks around before the work",
    "judge": "judges results",
    "background": "what nobody waits for: summaries",
    "embed": "turns text into vectors",
    FALLBACK: "takes over a turn whose model does not answer",
}


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

    async def work(app: App) -> list[dict[str, Any]]:
        own = await find(app.runtime, session) if session else None
        try:
            main = own.model if own else await app.choose()
        except NoModel:
            main = ""
        there = {**app.roles, FALLBACK: ", ".join(app.config.settings.roles.fallback)}
        rows: list[dict[str, Any]] = []
        for role in ROLES:
            said = own.roles.get(role, "") if own else ""
            set_ = there.get(role, "")
            alone = role in ALONE
            model = main if role == MAIN else said or set_ or ("" if alone else main)
            if role == MAIN:
                source = "session" if own else "config" if app.config.settings.model else "found" if main else ""
            else:
                source = "session" if said else "config" if set_ else "" if alone else MAIN
            missing = app.unknown(model.split(", ")) if model and role != MAIN else []
            rows.append({"role": role, "model": model, "from": source, "work": WORK[role], "unknown": missing})
        return rows

    rows = door.run(work)
    if as_json:
        return put_json(rows)
    table = [[each["role"], flat(each["model"]) or "-", each["from"] or "not set", each["work"]] for each in rows]
    put_table([["ROLE", "MODEL", "FROM", "WORK"], *table], drop=(3, 2))
    for each in rows:
        for model in each["unknown"]:
            sys.stderr.write(f"sylph: {each['role']}: there is no provider for {flat(model)}\n")
    return 0
