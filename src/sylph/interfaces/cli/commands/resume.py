"""`sylph resume`: an interrupted turn goes on to its end; without one, the chat opens."""

import sys
from typing import Any

import click

from sylph.app import App
from sylph.core.commands import AbandonTurn, Continue
from sylph.core.errors import UserError
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.cli.commands.chat import open_chat
from sylph.interfaces.cli.commands.resume_all import deliver_notifications, resume_all
from sylph.interfaces.cli.kit.cli_context import CliContext, print_text
from sylph.interfaces.cli.kit.options import TaskOptions, task_options
from sylph.interfaces.cli.terminal.keyboard import Keyboard
from sylph.interfaces.cli.terminal.session_picker import (
    complete_session_ids,
    find_session,
    pick_session,
    started_sessions,
)
from sylph.interfaces.cli.turn.open_session import adapt_session
from sylph.interfaces.cli.turn.runner import TerminalTurnRunner
from sylph.interfaces.text.interrupted_turn import choose_turn_message, interrupted_task, resume_commands
from sylph.interfaces.text.render import one_line


@click.command()
@click.argument("which", metavar="[SESSION]", required=False, default="", shell_complete=complete_session_ids)
@click.option("--drop", is_flag=True, help="End the interrupted turn instead; nothing of it is run.")
@click.option("--all", "every", is_flag=True, help="Everything that was left open, a few at a time.")
@task_options("session", "cwd", "dry_run", "key", "attach")
@click.pass_obj
def command(cli: CliContext, which: str, *, drop: bool, every: bool, **told: Any) -> int:
    """Go on with SESSION (an id, the start of one, or `last`); without one, with the turn that was interrupted.

    A turn that was interrupted goes on to its end and its answer is printed; a notification that was not delivered is
    sent. Without either, the chat opens.
    """
    options = TaskOptions(session=which, **told)
    if every:
        if which or drop or options.model or options.mode:
            raise UserError("--all goes on with everything as it was.", next=["sylph resume --all", "sylph resume ID"])
        return cli.run(lambda app: resume_all(app, quiet=options.quiet, as_json=options.as_json))
    return cli.run(lambda app: drop_turn(app, options) if drop else resume_session(app, options))


async def resume_session(app: App, options: TaskOptions) -> int:
    summary = await choose_session(app, options)
    if summary.outbox and not summary.open_turn and not summary.queue:
        return await deliver_notifications(app, summary, as_json=options.as_json)
    if not summary.open_turn and not summary.queue:
        return await _resume_chat(app, summary, options)
    summary = await adapt_session(app, summary, options)
    runner = TerminalTurnRunner(app, quiet=options.quiet, as_json=options.as_json)
    # What the server has taken up already is only followed.
    return await runner.run_turn(summary, None if summary.pid == app.runtime.pid else Continue())


async def drop_turn(app: App, options: TaskOptions) -> int:
    summary = await choose_session(app, options)
    task = one_line(await interrupted_task(app.runtime, summary))
    await app.runtime.send(summary.id, AbandonTurn())
    print_text(f"{summary.id}: dropped, {task!r} is not gone on with.")
    return 0


async def choose_session(app: App, options: TaskOptions) -> SessionState:
    """The session that is named; else the one that was interrupted, or the one that the person picks."""
    if options.session:
        return await find_session(app.runtime, options.session)
    found = await app.runtime.list_resumable()
    if len(found) == 1:
        return found[0]
    keyboard = None if options.as_json else Keyboard.find()
    if keyboard:
        return await pick_session(app.runtime, found or await started_sessions(app.runtime), keyboard)
    if found:
        raise UserError(choose_turn_message(found), next=await resume_commands(app.runtime, found[:10]))
    raise UserError("No turn was interrupted.", next=['sylph -s last "the next task"', "sylph session list"])


async def _resume_chat(app: App, summary: SessionState, options: TaskOptions) -> int:
    if not sys.stdin.isatty() or options.as_json:
        raise UserError(
            f"Session {summary.id} has no interrupted turn to go on with.",
            next=[f'sylph -s {summary.id} "the next task"', "sylph session list"],
        )
    return await open_chat(app, options, await adapt_session(app, summary, options))
