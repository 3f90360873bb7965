"""`sylph verify`: holds the log of sessions against its hash chain."""

import sys

import click

from sylph.app import App
from sylph.core.text import count
from sylph.engine.verify import Verified
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import painted
from sylph.interfaces.cli.picker import find, session_names
from sylph.interfaces.render import trouble_lines


@click.command()
@click.argument("session", required=False, default="", shell_complete=session_names)
@json_option
@click.pass_obj
def command(door: Door, session: str, *, as_json: bool) -> int:
    """Check that no event of SESSION (or of any session) was changed, removed or added."""

    async def work(app: App) -> list[Verified]:
        return await app.runtime.verify((await find(app.runtime, session)).id if session else "")

    found = door.look(work)
    broken = [one for one in found if not one.ok]
    if as_json:
        put_json(
            [{"session": one.session, "events": one.events, "ok": one.ok, "problems": one.problems} for one in found]
        )
    else:
        for one in broken:
            sys.stderr.write(painted((row for each in one.problems for row in trouble_lines(each)), colour=False))
        events = sum(one.events for one in found)
        put(f"{count(len(found), 'session')}, {count(events, 'event')}: {_verdict(broken)}")
    return codes.STORE.number if broken else 0


def _verdict(broken: list[Verified]) -> str:
    return "every chain holds." if not broken else f"broken in {', '.join(one.session for one in broken)}."
