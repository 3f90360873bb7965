"""`sylph policy`: the rules that decide about calls, and the way to a decision."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from sylph.app import App
from sylph.config.rulebook import PROJECT
from sylph.core.errors import ToolError, UserError
from sylph.core.facts import Mode
from sylph.core.messages import ToolCall
from sylph.core.permission import Decision, Rule
from sylph.core.rule_words import told
from sylph.core.similar import guess
from sylph.core.tool import Tool
from sylph.engine.explain import Explained, explain
from sylph.engine.summary import Summary
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import paint
from sylph.interfaces.cli.picker import session_names
from sylph.interfaces.render import Span, Style, flat
from sylph.interfaces.ruled import agreeable, decided, listed
from sylph.wiring import rulebook_of

EXAMPLES = {"command": '"rm -rf build"', "path": "path=src/a.txt", "url": "https://example.org"}
STYLES: dict[Decision, Style] = {"allow": "ok", "ask": "warn", "deny": "bad"}


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, door: Door, *, as_json: bool) -> int | None:
    """Show the rules that apply here, in their order: the first that fits decides.

    \b
    sylph policy explain shell "git push --force"     what would be decided, and why
    sylph policy add deny --command "git push *"      a rule for all projects
    sylph policy remove 2                             forget a remembered rule

    A project's own rules are in .sylph/rules.toml; they can only make things stricter.
    """
    if context.invoked_subcommand:
        return None
    book, place = rulebook_of(door.config), Path.cwd()
    rules = book.read(place)
    sources = listed(door.config.settings.rules, book, rules)
    if as_json:
        shown = [{"from": source, "number": number or None, "rule": rule} for source, number, rule in sources]
        return put_json({"rules": shown, "project": str(place / PROJECT), "trouble": rules.trouble or None})
    if rules.trouble:
        sys.stderr.write(f"sylph: {rules.trouble}; until then every effect here is asked about\n")
    if not sources:
        put("There are no rules: the mode decides. `sylph policy add --help` makes one.")
        return 0
    rows = [[source, str(number or ""), told(rule), _note(source, rule)] for source, number, rule in sources]
    put_table([["FROM", "NO", "RULE", ""], *rows], drop=(3,))
    return 0


def _note(source: str, rule: Rule) -> str:
    if source == "project" and rule.decision == "allow":
        return "not heeded: a project can only make things stricter"
    return flat(rule.why, 60)


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
def add(door: Door, line: str, *, as_json: bool, **named: Any) -> int:
    """Remember a rule for all projects. What is not named fits everything."""
    if empty := [name for name, value in {**named, "command": line}.items() if value == "" and _given(name)]:
        raise UserError(f"--{empty[0]} is empty.", next=["leave it out to fit everything", "sylph policy add --help"])
    rule = Rule(command=line, **named)
    agreeable(rule)
    book = rulebook_of(door.config)
    book.remember([rule])
    if as_json:
        return put_json({"rule": rule, "file": str(book.file)})
    put(f"Remembered in {book.file}: {told(rule)}.")
    return 0


def _given(name: str) -> bool:
    """Whether the person wrote the option, and did not leave it out."""
    option = "line" if name == "command" else name
    return click.get_current_context().get_parameter_source(option) == click.core.ParameterSource.COMMANDLINE


@command.command("remove")
@click.argument("number", type=int)
@json_option
@click.pass_obj
def remove(door: Door, number: int, *, as_json: bool) -> int:
    """Forget a remembered rule; `sylph policy` shows its number."""
    book = rulebook_of(door.config)
    gone = book.forget(number)
    if as_json:
        return put_json({"rule": gone, "file": str(book.file)})
    put(f"Forgotten: {told(gone)}.")
    return 0


@command.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("call", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--mode", type=click.Choice(get_args(Mode)), help="In this mode; otherwise in that of the session.")
@click.option("--session", default="", shell_complete=session_names, help="As in this session, with what it allowed.")
@json_option
@click.pass_obj
def explain_(door: Door, call: tuple[str, ...], *, mode: Mode | None, session: str, as_json: bool) -> int:
    """Show what would be decided about a call, and the way to it. Nothing is run.

    \b
    sylph policy explain shell "rm -rf build"
    sylph policy explain 'write {"path": ".env", "content": ""}'
    sylph policy explain write path=.env content=x --mode trust
    """

    async def work(app: App) -> tuple[ToolCall, Explained, Mode]:
        summary = await app.runtime.find(session) if session else Summary(workspace=str(Path.cwd().resolve()))
        summary.mode = mode or (summary.mode if session else app.config.settings.mode)
        wanted = parsed(" ".join(call), app.runtime.executor.tools)
        try:
            return wanted, explain(app.runtime.executor, wanted, summary), summary.mode
        except ToolError as error:
            raise UserError(str(error), next=error.trouble.next) from error

    made, found, applied = door.look(work)
    if as_json:
        return put_json(decided(made, found, applied))
    colour = sys.stdout.isatty() and door.place.terminal.colour
    put(f"{made.name} {flat(made.arguments, 300)}")
    for label, value in _facts(found):
        put(f"  {label:<9} {value}")
    for number, step in enumerate(found.ruling.path, 1):
        mark = paint((Span(f"{step.decision:<5}", STYLES[step.decision]),), colour=colour)
        put(f"  {number}. {mark} {flat(step.reason, 400)}")
    verdict = paint((Span(found.ruling.decision, STYLES[found.ruling.decision]),), colour=colour)
    put(f"→ {verdict}: {flat(found.ruling.reason, 400)}")
    return 0


def parsed(text: str, tools: Mapping[str, Tool]) -> ToolCall:
    """A call from the words of a person: a tool, then JSON, or name=value pairs, or its one main argument."""
    name, _, rest = text.strip().partition(" ")
    tool = tools.get(name)
    if tool is None:
        raise UserError(f"There is no tool {name!r}.{guess(name, tools)}", kind="not_found", next=["sylph tools"])
    rest = rest.strip()
    if _is_object(rest):
        return ToolCall("explained", name, rest)
    fields = tool.args.__struct_fields__
    pairs = _pairs(rest, fields)
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


def _pairs(text: str, fields: tuple[str, ...]) -> dict[str, Any]:
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


def _facts(found: Explained) -> list[tuple[str, str]]:
    judged = found.judged
    rows = [("effect", f"{judged.effect}, {judged.risk}" + (f": {flat(judged.why, 200)}" if judged.why else ""))]
    named = (
        ("commands", judged.commands),
        ("reads", judged.reads),
        ("writes", judged.writes),
        ("hosts", judged.hosts),
    )
    rows += [(label, flat(" · ".join(items[:8]), 300)) for label, items in named if items]
    return rows
