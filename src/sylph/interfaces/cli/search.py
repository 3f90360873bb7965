"""`sylph session search`: where something was said or done."""

import time
from datetime import UTC, datetime, timedelta

import click
import msgspec

from sylph.app import App
from sylph.core.archive import Findings, Speaker, Wanted
from sylph.engine.archive import LogArchive
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.picker import find
from sylph.interfaces.render import ago, flat

ROLES = ("user", "assistant", "call", "result")


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--session", default="", help="Only this session: an id, the start of one, or `last`.")
@click.option("--since", default=None, metavar="WHEN", help="Only since a day (2026-01-31) or so many days (7d).")
@click.option("--role", type=click.Choice(ROLES), default=None, help="Only what came from there.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most this many.")
@json_option
@click.pass_obj
def command(door: Door, words: tuple[str, ...], **chosen: object) -> int:
    """Search all sessions for WORDS, the newest place first; "a phrase" keeps words together."""
    options = msgspec.convert(chosen, Options)
    oldest = since(options.since) if options.since else 0

    async def work(app: App) -> int:
        id = (await find(app.runtime, options.session)).id if options.session else ""
        wanted = Wanted(words=" ".join(words), session=id, since=oldest, role=options.role, limit=options.limit)
        findings = await LogArchive(app.runtime.log.path).search(wanted)
        if options.as_json:
            return put_json([msgspec.to_builtins(found) for found in findings.found])
        show(findings)
        return 0

    return door.look(work)


class Options(msgspec.Struct):
    session: str
    since: str | None
    role: Speaker | None
    limit: int
    as_json: bool


def since(text: str) -> int:
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


def show(findings: Findings) -> None:
    if not findings.found:
        put("Nothing found.")
        return
    now = round(time.time() * 1000)
    rows = [
        [found.session, str(found.seq), found.role, ago(found.ts, now), flat(found.text)] for found in findings.found
    ]
    put_table([["SESSION", "FACT", "ROLE", "WHEN", "TEXT"], *rows], drop=(3, 2))
    if findings.more:
        put("… there may be more (--limit)")
