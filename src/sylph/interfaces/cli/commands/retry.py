"""`sylph retry`: the last turn of a session once more, from its message."""

from typing import Any

import click

from sylph.app import App
from sylph.core.commands import Retry
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.kit.options import TaskOptions, task_options
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids
from sylph.interfaces.cli.turn.open_session import find_named_session
from sylph.interfaces.cli.turn.runner import TerminalTurnRunner


@click.command()
@click.argument("which", metavar="[SESSION]", required=False, default="last", shell_complete=complete_session_ids)
@task_options("session", "cwd", "key", "attach")
@click.pass_obj
def command(cli: CliContext, which: str, **told: Any) -> int:
    """Run the last turn of SESSION (or of the last one) again. The log keeps the old one; the model forgets it."""
    options = TaskOptions(session=which, **told)
    return cli.run(lambda app: retry_turn(app, options))


async def retry_turn(app: App, options: TaskOptions) -> int:
    runner = TerminalTurnRunner(app, quiet=options.quiet, as_json=options.as_json)
    return await runner.run_turn(await find_named_session(app, options), Retry(dry_run=options.dry_run))
