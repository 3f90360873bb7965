"""`sylph resume`: an interrupted turn goes on to its end; without one, the chat opens."""

import sys
from typing import Any

import click

from sylph.app import App
from sylph.core.commands import Continue, Drop
from sylph.core.errors import UserError
from sylph.engine.summary import Summary
from sylph.interfaces.cli.all import deliver, resume_all
from sylph.interfaces.cli.chat import open_chat
from sylph.interfaces.cli.door import Door, put
from sylph.interfaces.cli.keyboard import Keyboard
from sylph.interfaces.cli.options import Options, work
from sylph.interfaces.cli.picker import begun, find, pick, session_names
from sylph.interfaces.cli.run import adapted
from sylph.interfaces.cli.runner import Runner
from sylph.interfaces.pending import listed, several, task_of
from sylph.interfaces.render import flat


@click.command()
@click.argument("which", metavar="[SESSION]", required=False, default="", shell_complete=session_names)
@click.option("--drop", is_flag=True, help="End the interrupted turn instead; nothing of it is run.")
@click.option("--all", "every", is_flag=True, help="Everything that was left open, a few at a time.")
@work("session", "cwd", "dry_run", "key", "attach")
@click.pass_obj
def command(door: Door, which: str, *, drop: bool, every: bool, **told: Any) -> int:
    """Go on with SESSION (an id, the start of one, or `last`); without one, with the turn that was interrupted.

    A turn that was interrupted goes on to its end and its answer is printed; a notification that was not delivered is
    sent. Without either, the chat opens.
    """
    options = Options(session=which, **told)
    if every:
        if which or drop or options.model or options.mode:
            raise UserError("--all goes on with everything as it was.", next=["sylph resume --all", "sylph resume ID"])
        return door.run(lambda app: resume_all(app, quiet=options.quiet, as_json=options.as_json))
    return door.run(lambda app: give_up(app, options) if drop else perform(app, options))


async def perform(app: App, options: Options) -> int:
    summary = await chosen(app, options)
    if summary.outbox and not summary.open_turn and not summary.queue:
        return await deliver(app, summary, as_json=options.as_json)
    if not summary.open_turn and not summary.queue:
        return await _chat(app, summary, options)
    summary = await adapted(app, summary, options)
    runner = Runner(app, quiet=options.quiet, as_json=options.as_json)
    # What the server has taken up already is only followed.
    return await runner.turn(summary, None if summary.pid == app.runtime.pid else Continue())


async def give_up(app: App, options: Options) -> int:
    summary = await chosen(app, options)
    task = flat(await task_of(app.runtime, summary))
    await app.runtime.send(summary.id, Drop())
    put(f"{summary.id}: dropped, {task!r} is not gone on with.")
    return 0


async def chosen(app: App, options: Options) -> Summary:
    """The session that is named; else the one that was interrupted, or the one that the person picks."""
    if options.session:
        return await find(app.runtime, options.session)
    found = await app.runtime.resumable()
    if len(found) == 1:
        return found[0]
    keyboard = None if options.as_json else Keyboard.find()
    if keyboard:
        return await pick(app.runtime, found or await begun(app.runtime), keyboard)
    if found:
        raise UserError(several(found), next=await listed(app.runtime, found[:10]))
    raise UserError("No turn was interrupted.", next=['sylph -s last "the next task"', "sylph session list"])


async def _chat(app: App, summary: Summary, options: Options) -> int:
    if not sys.stdin.isatty() or options.as_json:
        raise UserError(
            f"Session {summary.id} has no interrupted turn to go on with.",
            next=[f'sylph -s {summary.id} "the next task"', "sylph session list"],
        )
    return await open_chat(app, options, await adapted(app, summary, options))
