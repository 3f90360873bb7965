"""`sylph diagnose`: what is wrong with a session, what shows it, and what to do about it."""

import sys

import click

from sylph.app import App
from sylph.core.text import count
from sylph.engine.diagnosis.finding import Finding, State
from sylph.engine.examine import examine
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import painted
from sylph.interfaces.cli.picker import session_named, session_names
from sylph.interfaces.render import Line, Span, Style, flat, line
from sylph.providers.dialects import dialects

MARKS: dict[State, tuple[str, Style]] = {
    "ok": ("✓", "ok"),
    "note": ("·", "dim"),
    "warn": ("!", "warn"),
    "fail": ("✗", "bad"),
}
EVIDENCE = 8


@click.command()
@click.argument("session", required=False, default="", shell_complete=session_names)
@json_option
@click.pass_obj
def command(door: Door, session: str, *, as_json: bool) -> int:
    """Look through SESSION for everything that can be wrong with it, and say what to do about it.

    Calls and their results, effects left open, how turns ended, states, questions, messages, deliveries, model calls,
    the prompt, compaction, snapshots, jobs, the lock; and the session is run again from its log. Nothing is changed.
    The exit code is 1 if something is broken (✗); what only deserves attention (!) or is worth knowing (·) leaves it
    at 0.

    \b
      sylph diagnose last
      sylph diagnose k3x --json
    """

    async def work(app: App) -> tuple[str, list[Finding]]:
        id = (await session_named(app.runtime, session, "sylph diagnose")).id
        return id, await examine(app.runtime, id, dialects)

    id, findings = door.look(work)
    failed = any(one.state == "fail" for one in findings)
    if as_json:
        put_json({"session": id, "ok": not failed, "findings": findings})
    else:
        colour = sys.stdout.isatty() and door.place.terminal.colour
        put(painted((row for one in findings for row in rows(one)), colour=colour) + _sum(id, findings))
    return codes.FAILED.number if failed else 0


def rows(one: Finding) -> list[Line]:
    """A finding, and below it what to do."""
    mark, style = MARKS[one.state]
    seen = Span(f"  ({_facts(one.evidence)})", "dim") if one.evidence else Span("")
    steps = [line(f"{'':14}→ {flat(step, 200)}", "dim") for step in one.next]
    return [(Span(mark, style), Span(f" {one.check:<11} {flat(one.message, 400)}"), seen), *steps]


def _facts(evidence: tuple[int, ...]) -> str:
    more = f", and {len(evidence) - EVIDENCE} more" if len(evidence) > EVIDENCE else ""
    return f"fact{'s' if len(evidence) > 1 else ''} {', '.join(map(str, evidence[:EVIDENCE]))}{more}"


def _sum(id: str, findings: list[Finding]) -> str:
    wrong = sum(one.state == "fail" for one in findings)
    doubtful = sum(one.state == "warn" for one in findings)
    if not wrong and not doubtful:
        return f"{id}: nothing is wrong."
    return f"{id}: {wrong} broken, {count(doubtful, 'warning')}."
