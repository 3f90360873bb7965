"""`sylph session search`: where something was said or done."""

import time
from datetime import UTC, datetime, timedelta

import click
import msgspec

from sylph.app import App
from sylph.core.history_search import HistoryMatches, HistoryQuery, HistoryRole
from sylph.engine.log.search import LogSearch
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import find_session
from sylph.interfaces.text.render import format_age, one_line

ROLES = ("user", "assistant", "call", "result")


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--session", default="", help="Only this session: an id, the start of one, or `last`.")
@click.option("--since", default=None, metavar="WHEN", help="Only since a day (2026-01-31) or so many days (7d).")
@click.option("--role", type=click.Choice(ROLES), default=None, help="Only what came from there.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most this many.")
@json_option
@click.pass_obj
def command(cli: CliContext, words: tuple[str, ...], **chosen: object) -> int:
    """Search all sessions for WORDS, the newest place first; "a phrase" keeps words together."""
    options = msgspec.convert(chosen, SearchOptions)
    oldest = parse_since(options.since) if options.since else 0

    async def work(app: App) -> int:
        id = (await find_session(app.runtime, options.session)).id if options.session else ""
        wanted = HistoryQuery(words=" ".join(words), session=id, since=oldest, role=options.role, limit=options.limit)
        findings = await LogSearch(app.runtime.log.path).search(wanted)
        if options.as_json:
            return print_json([msgspec.to_builtins(found) for found in findings.found])
        show_findings(findings)
        return 0

    return cli.run_read_only(work)


class SearchOptions(msgspec.Struct):
    session: str
    since: str | None
    role: HistoryRole | None
    limit: int
    as_json: bool


def parse_since(text: str) -> int:
    """Milliseconds; raises what click shows."""
    if text.endswith("d") and text[:-1].isdigit():
        day = datetime.now(UTC) - timedelta(days=min(int(text[:-1]), 36_500))
        return round(day.timestamp() * 1000)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.BadParameter(
            "give a day like 2026-01-31, or a number of days like 7d", param_hint="--since"
        ) from None


def show_findings(findings: HistoryMatches) -> None:
    if not findings.found:
        print_text("Nothing found.")
        return
    now = round(time.time() * 1000)
    rows = [
        [found.session, str(found.seq), found.role, format_age(found.ts, now), one_line(found.text)]
        for found in findings.found
    ]
    print_table([["SESSION", "FACT", "ROLE", "WHEN", "TEXT"], *rows], drop=(3, 2))
    if findings.more:
        print_text("… there may be more (--limit)")
