"""`sylph retry`: the last turn of a session once more, from its message."""

from typing import Any

import click

from sylph.app import App
from sylph.core.commands import Retry
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.options import Options, work
from sylph.interfaces.cli.picker import session_names
from sylph.interfaces.cli.run import named
from sylph.interfaces.cli.runner import Runner


@click.command()
@click.argument("which", metavar="[SESSION]", required=False, default="last", shell_complete=session_names)
@work("session", "cwd", "key", "attach")
@click.pass_obj
def command(door: Door, which: str, **told: Any) -> int:
    """Run the last turn of SESSION (or of the last one) again. The log keeps the old one; the model forgets it."""
    options = Options(session=which, **told)
    return door.run(lambda app: perform(app, options))


async def perform(app: App, options: Options) -> int:
    runner = Runner(app, quiet=options.quiet, as_json=options.as_json)
    return await runner.turn(await named(app, options), Retry(dry_run=options.dry_run))
