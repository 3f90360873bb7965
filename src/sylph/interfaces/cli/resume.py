"""`sylph resume`: an interrupted turn goes on to its end; without one, the chat opens."""

import sys
from typing import Any

import click

from sylph.app import App
from sylph.core.commands import Continue
from sylph.core.errors import UserError
from sylph.engine.summary import Summary
from sylph.interfaces.cli.chat import open_chat
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.options import Options, work
from sylph.interfaces.cli.picker import session_named, session_names
from sylph.interfaces.cli.runner import Runner


@click.command()
@click.argument("which", metavar="[SESSION]", required=False, default="", shell_complete=session_names)
@work("session", "cwd", "dry_run")
@click.pass_obj
def command(door: Door, which: str, **told: Any) -> int:
    """Go on with SESSION (an id, the start of one, or `last`).

    A turn that was interrupted goes on to its end and its answer is printed. Without one, the chat opens.
    """
    options = Options(session=which, **told)
    return door.run(lambda app: perform(app, options))


async def perform(app: App, options: Options) -> int:
    summary = await session_named(app.runtime, options.session or await _only(app), "sylph resume")
    if not summary.open_turn and not summary.queue:
        return await _chat(app, summary, options)
    summary = await app.adapt(summary, model=options.model, mode=options.mode)
    runner = Runner(app, quiet=options.quiet, as_json=options.as_json)
    return await runner.turn(summary, Continue(), resume=True)


async def _only(app: App) -> str:
    """The one session that waits to be finished, where a person can see which one that is."""
    found = await app.runtime.interrupted() if sys.stdin.isatty() else []
    return found[0].id if len(found) == 1 else ""


async def _chat(app: App, summary: Summary, options: Options) -> int:
    if not sys.stdin.isatty() or options.as_json:
        raise UserError(
            f"Session {summary.id} has no interrupted turn to go on with.",
            next=[f'sylph -s {summary.id} "the next task"', "sylph session list"],
        )
    return await open_chat(app, options, await app.adapt(summary, model=options.model, mode=options.mode))
