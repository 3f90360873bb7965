"""`sylph policy`: the rules that decide about calls, and the way to a decision."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from sylph.app import App
from sylph.compose.engine import build_rule_store
from sylph.config.rules_file import PROJECT_RULES_FILE
from sylph.core.errors import ToolError, UserError
from sylph.core.messages import ToolCall
from sylph.core.permission.rule_text import describe_rule
from sylph.core.permission.types import Decision, Mode, PermissionRule
from sylph.core.text.suggestion import suggest_word
from sylph.core.tool import Tool
from sylph.engine.calls.explain import DecisionPreview, explain_decision
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.colours import paint_line
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids
from sylph.interfaces.reports.rule_view import list_rules, make_decision_view, require_sensible_rule
from sylph.interfaces.text.render import TextSpan, TextStyle, one_line

EXAMPLES = {"command": '"rm -rf build"', "path": "path=src/a.txt", "url": "https://example.org"}
STYLES: dict[Decision, TextStyle] = {"allow": "ok", "ask": "warn", "deny": "bad"}


@click.group(cls=SuggestingGroup, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, cli: CliContext, *, as_json: bool) -> int | None:
    """Show the rules that apply here, in their order: the first that fits decides.

    \b
    sylph policy explain shell "git push --force"     what would be decided, and why
    sylph policy add deny --command "git push *"      a rule for all projects
    sylph policy remove 2                             forget a remembered rule

    A project's own rules are in .sylph/rules.toml; they can only make things stricter.
    """
    if context.invoked_subcommand:
        return None
    book, place = build_rule_store(cli.config), Path.cwd()
    rules = book.read(place)
    sources = list_rules(cli.config.settings.rules, book, rules)
    if as_json:
        shown = [{"from": source, "number": number or None, "rule": rule} for source, number, rule in sources]
        return print_json(
            {"rules": shown, "project": str(place / PROJECT_RULES_FILE), "trouble": rules.trouble or None}
        )
    if rules.trouble:
        sys.stderr.write(f"sylph: {rules.trouble}; until then every effect here is asked about\n")
    if not sources:
        print_text("There are no rules: the mode decides. `sylph policy add --help` makes one.")
        return 0
    rows = [
        [source, str(number or ""), describe_rule(rule), _rule_note(source, rule)] for source, number, rule in sources
    ]
    print_table([["FROM", "NO", "RULE", ""], *rows], drop=(3,))
    return 0


def _rule_note(source: str, rule: PermissionRule) -> str:
    if source == "project" and rule.decision == "allow":
        return "not heeded: a project can only make things stricter"
    return one_line(rule.why, 60)


@command.command("add")
@click.argument("decision", type=click.Choice(get_args(Decision)))
@click.option("--tool", default="*", metavar="NAME", help="Only this tool; a pattern may stand for several.")
@click.option("--path", default="", metavar="GLOB", help="Files, in the workspace unless it begins with / or ~.")
@click.option("--command", "line", default="", metavar="PATTERN", help='Simple commands, as "git push *".')
@click.option("--host", default="", metavar="PATTERN", help='Machines, as "*.example.org".')
@click.option("--until", default="", metavar="DATE", help="The last moment it counts, as 2030-01-31.")
@click.option("--why", default="", metavar="TEXT", help="A reason, shown with the decision.")
@json_option
@click.pass_obj
def add_rule(cli: CliContext, line: str, *, as_json: bool, **named: Any) -> int:
    """Remember a rule for all projects. What is not named fits everything."""
    if empty := [name for name, value in {**named, "command": line}.items() if value == "" and _was_given(name)]:
        raise UserError(f"--{empty[0]} is empty.", next=["leave it out to fit everything", "sylph policy add --help"])
    rule = PermissionRule(command=line, **named)
    require_sensible_rule(rule)
    book = build_rule_store(cli.config)
    book.remember([rule])
    if as_json:
        return print_json({"rule": rule, "file": str(book.file)})
    print_text(f"Remembered in {book.file}: {describe_rule(rule)}.")
    return 0


def _was_given(name: str) -> bool:
    """Whether the person wrote the option, and did not leave it out."""
    option = "line" if name == "command" else name
    return click.get_current_context().get_parameter_source(option) == click.core.ParameterSource.COMMANDLINE


@command.command("remove")
@click.argument("number", type=int)
@json_option
@click.pass_obj
def remove_rule(cli: CliContext, number: int, *, as_json: bool) -> int:
    """Forget a remembered rule; `sylph policy` shows its number."""
    book = build_rule_store(cli.config)
    gone = book.forget_rule(number)
    if as_json:
        return print_json({"rule": gone, "file": str(book.file)})
    print_text(f"Forgotten: {describe_rule(gone)}.")
    return 0


@command.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("call", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--mode", type=click.Choice(get_args(Mode)), help="In this mode; otherwise in that of the session.")
@click.option(
    "--session", default="", shell_complete=complete_session_ids, help="As in this session, with what it allowed."
)
@json_option
@click.pass_obj
def explain_command(cli: CliContext, call: tuple[str, ...], *, mode: Mode | None, session: str, as_json: bool) -> int:
    """Show what would be decided about a call, and the way to it. Nothing is run.

    \b
    sylph policy explain shell "rm -rf build"
    sylph policy explain 'write {"path": ".env", "content": ""}'
    sylph policy explain write path=.env content=x --mode trust
    """

    async def work(app: App) -> tuple[ToolCall, DecisionPreview, Mode]:
        summary = (
            await app.runtime.find_session(session) if session else SessionState(workspace=str(Path.cwd().resolve()))
        )
        summary.mode = mode or (summary.mode if session else app.config.settings.mode)
        wanted = parse_call(" ".join(call), app.runtime.executor.tools)
        try:
            return wanted, explain_decision(app.runtime.executor, wanted, summary), summary.mode
        except ToolError as error:
            raise UserError(str(error), next=error.trouble.next) from error

    made, found, applied = cli.run_read_only(work)
    if as_json:
        return print_json(make_decision_view(made, found, applied))
    colour = sys.stdout.isatty() and cli.base_config.terminal.colour
    print_text(f"{made.name} {one_line(made.arguments, 300)}")
    for label, value in _assessment_rows(found):
        print_text(f"  {label:<9} {value}")
    for number, step in enumerate(found.ruling.path, 1):
        mark = paint_line((TextSpan(f"{step.decision:<5}", STYLES[step.decision]),), colour=colour)
        print_text(f"  {number}. {mark} {one_line(step.reason, 400)}")
    verdict = paint_line((TextSpan(found.ruling.decision, STYLES[found.ruling.decision]),), colour=colour)
    print_text(f"→ {verdict}: {one_line(found.ruling.reason, 400)}")
    return 0


def parse_call(text: str, tools: Mapping[str, Tool]) -> ToolCall:
    """A call from the words of a person: a tool, then JSON, or name=value pairs, or its one main argument."""
    name, _, rest = text.strip().partition(" ")
    tool = tools.get(name)
    if tool is None:
        raise UserError(
            f"There is no tool {name!r}.{suggest_word(name, tools)}", kind="not_found", next=["sylph tools"]
        )
    rest = rest.strip()
    if _is_object(rest):
        return ToolCall("explained", name, rest)
    fields = tool.args.__struct_fields__
    pairs = _parse_pairs(rest, fields)
    main = next((field for field in ("command", "path", "url", "code", "action") if field in fields), fields[0])
    required = msgspec.json.schema(tool.args)["$defs"][tool.args.__name__].get("required", ())
    if required and not rest:
        example = EXAMPLES.get(main, f"{main}=…")
        raise UserError(f"What would {name} be given?", next=[f"sylph policy explain {name} {example}"])
    values = pairs or ({main: rest} if rest else {})
    # What is not given does not matter for the decision, and is not run.
    return ToolCall("explained", name, msgspec.json.encode({**dict.fromkeys(required, ""), **values}).decode())


def _is_object(text: str) -> bool:
    """Whether it is JSON; a command may begin with a brace, too."""
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return False
    return True


def _parse_pairs(text: str, fields: tuple[str, ...]) -> dict[str, Any]:
    """`a=1 b=two`; nothing where that is not how it is written."""
    found: dict[str, Any] = {}
    for word in text.split(" "):
        name, equals, value = word.partition("=")
        if not equals or name not in fields:
            if not found:
                return {}
            last = next(reversed(found))
            found[last] = f"{found[last]} {word}"
            continue
        found[name] = value
    return found


def _assessment_rows(found: DecisionPreview) -> list[tuple[str, str]]:
    judged = found.judged
    rows = [("effect", f"{judged.effect}, {judged.risk}" + (f": {one_line(judged.why, 200)}" if judged.why else ""))]
    named = (
        ("commands", judged.commands),
        ("reads", judged.reads),
        ("writes", judged.writes),
        ("hosts", judged.hosts),
    )
    rows += [(label, one_line(" · ".join(items[:8]), 300)) for label, items in named if items]
    return rows
