"""`sylph verify`: holds the log of sessions against its hash chain."""

import sys

import click

from sylph.app import App
from sylph.core.text.formatting import count_noun
from sylph.engine.log.verify import VerificationResult
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids, find_session
from sylph.interfaces.text.render import error_lines


@click.command()
@click.argument("session", required=False, default="", shell_complete=complete_session_ids)
@json_option
@click.pass_obj
def command(cli: CliContext, session: str, *, as_json: bool) -> int:
    """Check that no event of SESSION (or of any session) was changed, removed or added."""

    async def work(app: App) -> list[VerificationResult]:
        return await app.runtime.verify_sessions((await find_session(app.runtime, session)).id if session else "")

    found = cli.run_read_only(work)
    broken = [one for one in found if not one.ok]
    if as_json:
        print_json(
            [{"session": one.session, "events": one.events, "ok": one.ok, "problems": one.problems} for one in found]
        )
    else:
        for one in broken:
            sys.stderr.write(paint_lines((row for each in one.problems for row in error_lines(each)), colour=False))
        events = sum(one.events for one in found)
        print_text(f"{count_noun(len(found), 'session')}, {count_noun(events, 'event')}: {_verdict_text(broken)}")
    return exit_code.STORE.number if broken else 0


def _verdict_text(broken: list[VerificationResult]) -> str:
    return "every chain holds." if not broken else f"broken in {', '.join(one.session for one in broken)}."
