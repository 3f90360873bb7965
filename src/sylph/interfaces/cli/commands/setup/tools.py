"""`sylph tools`: what the agent can do, and what would be decided about it now."""

import sys
from pathlib import Path
from typing import get_args

import click

from sylph.app import App
from sylph.core.errors import UserError
from sylph.core.permission.types import Decision, Mode
from sylph.core.text.suggestion import suggest_word
from sylph.core.tool import CallAssessment, Tool
from sylph.engine.calls.policy import PolicyDecision, PolicyInput, evaluate_policy
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.colours import paint_line
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.text.render import TextSpan, TextStyle, one_line

STYLES: dict[Decision, TextStyle] = {"allow": "ok", "ask": "warn", "deny": "bad"}
CRASH_OUTCOMES = {
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
def command(cli: CliContext, name: str, *, mode: Mode | None, as_json: bool) -> int:
    """List the tools with effect, risk and the decision that would apply now. With NAME: all about one of them.

    Where effect and risk depend on the arguments, it is told for a usual call; `sylph policy explain` judges one.
    """

    async def work(app: App) -> list[tuple[Tool, PolicyDecision]]:
        applied = mode or app.config.settings.mode
        rules = app.runtime.parts.consent.rulebook.read(Path.cwd())
        return [
            (
                tool,
                evaluate_policy(
                    PolicyInput(
                        tool=tool.name, mode=applied, judged=CallAssessment(tool.effect, tool.risk), rules=rules
                    )
                ),
            )
            for tool in app.runtime.executor.tools.values()
        ]

    found = cli.run_read_only(work)
    if name:
        return _show_tool(name, found, as_json=as_json)
    if as_json:
        return print_json([_tool_facts(tool, ruling) for tool, ruling in found])
    colour = sys.stdout.isatty() and cli.base_config.terminal.colour
    rows = [
        [
            tool.name,
            f"{tool.effect}{'*' if tool.judge else ''}",
            tool.risk,
            paint_line((TextSpan(ruling.decision, STYLES[ruling.decision]),), colour=colour),
            one_line(tool.description, 70),
        ]
        for tool, ruling in found
    ]
    print_table([["TOOL", "EFFECT", "RISK", "NOW", "WHAT IT DOES"], *rows], drop=(4,))
    print_text("* what it usually does; arguments can make it more or less: sylph policy explain TOOL …  tells")
    return 0


def _show_tool(name: str, found: list[tuple[Tool, PolicyDecision]], *, as_json: bool) -> int:
    known = {tool.name: (tool, ruling) for tool, ruling in found}
    if name not in known:
        raise UserError(
            f"There is no tool {name!r}.{suggest_word(name, known)}", kind="not_found", next=["sylph tools"]
        )
    tool, ruling = known[name]
    told = _tool_facts(tool, ruling)
    if as_json:
        return print_json(told)
    print_text(f"{tool.name}: {tool.description}")
    print_text(f"  effect    {tool.effect}{', by its arguments' if tool.judge else ''}; risk {tool.risk}")
    print_text(f"  now       {ruling.decision}: {ruling.reason}")
    print_text(f"  crash     {CRASH_OUTCOMES[tool.recourse]}")
    print_text(f"  dry run   {'shows what it would do' if tool.preview else 'is not run'}")
    print_text("  arguments")
    schema = tool.spec.schema
    for field, about in schema.get("properties", {}).items():
        need = " (needed)" if field in schema.get("required", ()) else ""
        need = f" (default {about['default']!r})" if "default" in about else need
        print_text(f"    {field:<12} {one_line(str(about.get('description', '')), 100)}{need}")
    return 0


def _tool_facts(tool: Tool, ruling: PolicyDecision) -> dict[str, object]:
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
