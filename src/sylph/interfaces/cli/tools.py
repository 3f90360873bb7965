"""`sylph tools`: what the agent can do, and what would be decided about it now."""

import sys
from pathlib import Path
from typing import get_args

import click

from sylph.app import App
from sylph.core.errors import UserError
from sylph.core.facts import Mode
from sylph.core.permission import Decision
from sylph.core.similar import guess
from sylph.core.tool import Judged, Tool
from sylph.engine.policy import Case, Ruling, decide
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import paint
from sylph.interfaces.render import Span, Style, flat

STYLES: dict[Decision, Style] = {"allow": "ok", "ask": "warn", "deny": "bad"}
AFTER = {
    "pure": "run again",
    "by_content": "told by the files",
    "by_key": "made again under its key",
    "by_probe": "told by its journal",
    "unknowable": "unknown",
}


@click.command()
@click.argument("name", default="")
@click.option("--mode", type=click.Choice(get_args(Mode)), help="What would be decided in this mode.")
@json_option
@click.pass_obj
def command(door: Door, name: str, *, mode: Mode | None, as_json: bool) -> int:
    """List the tools with effect, risk and the decision that would apply now. With NAME: all about one of them.

    Where effect and risk depend on the arguments, it is told for a usual call; `sylph policy explain` judges one.
    """

    async def work(app: App) -> list[tuple[Tool, Ruling]]:
        applied = mode or app.config.settings.mode
        rules = app.runtime.parts.consent.rulebook.read(Path.cwd())
        return [
            (tool, decide(Case(tool=tool.name, mode=applied, judged=Judged(tool.effect, tool.risk), rules=rules)))
            for tool in app.runtime.executor.tools.values()
        ]

    found = door.look(work)
    if name:
        return _one(name, found, as_json=as_json)
    if as_json:
        return put_json([_told(tool, ruling) for tool, ruling in found])
    colour = sys.stdout.isatty() and door.place.terminal.colour
    rows = [
        [
            tool.name,
            f"{tool.effect}{'*' if tool.judge else ''}",
            tool.risk,
            paint((Span(ruling.decision, STYLES[ruling.decision]),), colour=colour),
            flat(tool.description, 70),
        ]
        for tool, ruling in found
    ]
    put_table([["TOOL", "EFFECT", "RISK", "NOW", "WHAT IT DOES"], *rows], drop=(4,))
    put("* what it usually does; arguments can make it more or less: sylph policy explain TOOL …  tells")
    return 0


def _one(name: str, found: list[tuple[Tool, Ruling]], *, as_json: bool) -> int:
    known = {tool.name: (tool, ruling) for tool, ruling in found}
    if name not in known:
        raise UserError(f"There is no tool {name!r}.{guess(name, known)}", kind="not_found", next=["sylph tools"])
    tool, ruling = known[name]
    told = _told(tool, ruling)
    if as_json:
        return put_json(told)
    put(f"{tool.name}: {tool.description}")
    put(f"  effect    {tool.effect}{', by its arguments' if tool.judge else ''}; risk {tool.risk}")
    put(f"  now       {ruling.decision}: {ruling.reason}")
    put(f"  crash     {AFTER[tool.recourse]}")
    put(f"  dry run   {'shows what it would do' if tool.preview else 'is not run'}")
    put("  arguments")
    schema = tool.spec.schema
    for field, about in schema.get("properties", {}).items():
        need = " (needed)" if field in schema.get("required", ()) else ""
        need = f" (default {about['default']!r})" if "default" in about else need
        put(f"    {field:<12} {flat(str(about.get('description', '')), 100)}{need}")
    return 0


def _told(tool: Tool, ruling: Ruling) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "effect": tool.effect,
        "risk": tool.risk,
        "judged": tool.judge is not None,
        "recourse": tool.recourse,
        "dry_run": tool.preview is not None or tool.effect == "read",
        "decision": ruling.decision,
        "reason": ruling.reason,
        "schema": tool.spec.schema,
    }
