"""`sylph diagnose`: what is wrong with a session, what shows it, and what to do about it."""

import sys

import click

from sylph.app import App
from sylph.core.text.formatting import count_noun
from sylph.diagnosis.collect import examine_session
from sylph.diagnosis.finding import DiagnosisFinding, FindingState
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids, find_or_pick_session
from sylph.interfaces.text.render import StyledLine, TextSpan, TextStyle, one_line, styled_line
from sylph.providers.replay_providers import create_replay_providers

MARKS: dict[FindingState, tuple[str, TextStyle]] = {
    "ok": ("✓", "ok"),
    "note": ("·", "dim"),
    "warn": ("!", "warn"),
    "fail": ("✗", "bad"),
}
EVIDENCE = 8


@click.command()
@click.argument("session", required=False, default="", shell_complete=complete_session_ids)
@json_option
@click.pass_obj
def command(cli: CliContext, session: str, *, as_json: bool) -> int:
    """Look through SESSION for everything that can be wrong with it, and say what to do about it.

    Calls and their results, effects left open, how turns ended, states, questions, messages, deliveries, model calls,
    the prompt, compaction, snapshots, jobs, the lock; and the session is run again from its log. Nothing is changed.
    The exit code is 1 if something is broken (✗); what only deserves attention (!) or is worth knowing (·) leaves it
    at 0.

    \b
      sylph diagnose last
      sylph diagnose k3x --json
    """

    async def work(app: App) -> tuple[str, list[DiagnosisFinding]]:
        id = (await find_or_pick_session(app.runtime, session, "sylph diagnose")).id
        return id, await examine_session(app.runtime, id, create_replay_providers)

    id, findings = cli.run_read_only(work)
    failed = any(one.state == "fail" for one in findings)
    if as_json:
        print_json({"session": id, "ok": not failed, "findings": findings})
    else:
        colour = sys.stdout.isatty() and cli.base_config.terminal.colour
        print_text(
            paint_lines((row for one in findings for row in finding_lines(one)), colour=colour)
            + _summary_line(id, findings)
        )
    return exit_code.FAILED.number if failed else 0


def finding_lines(one: DiagnosisFinding) -> list[StyledLine]:
    """A finding, and below it what to do."""
    mark, style = MARKS[one.state]
    seen = TextSpan(f"  ({_evidence_text(one.evidence)})", "dim") if one.evidence else TextSpan("")
    steps = [styled_line(f"{'':14}→ {one_line(step, 200)}", "dim") for step in one.next]
    return [(TextSpan(mark, style), TextSpan(f" {one.check:<11} {one_line(one.message, 400)}"), seen), *steps]


def _evidence_text(evidence: tuple[int, ...]) -> str:
    more = f", and {len(evidence) - EVIDENCE} more" if len(evidence) > EVIDENCE else ""
    return f"fact{'s' if len(evidence) > 1 else ''} {', '.join(map(str, evidence[:EVIDENCE]))}{more}"


def _summary_line(id: str, findings: list[DiagnosisFinding]) -> str:
    wrong = sum(one.state == "fail" for one in findings)
    doubtful = sum(one.state == "warn" for one in findings)
    if not wrong and not doubtful:
        return f"{id}: nothing is wrong."
    return f"{id}: {wrong} broken, {count_noun(doubtful, 'warning')}."
