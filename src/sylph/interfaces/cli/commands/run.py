"""`sylph "task"`: one turn from the command line, its answer on stdout."""

from pathlib import Path
from typing import Any

import click

from sylph.app import App
from sylph.core.commands import Send
from sylph.core.errors import UserError
from sylph.interfaces.cli.kit.attachment_files import read_attachments
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.kit.options import TaskOptions, task_options
from sylph.interfaces.cli.kit.task_input import read_task
from sylph.interfaces.cli.turn import idempotent_run
from sylph.interfaces.cli.turn.open_session import open_session
from sylph.interfaces.cli.turn.runner import TerminalTurnRunner
from sylph.interfaces.text.interrupted_turn import resume_reminder
from sylph.interfaces.text.render import one_line, styled_line


@click.command()
@click.argument("task", nargs=-1)
@task_options()
@click.pass_obj
def command(cli: CliContext, task: tuple[str, ...], **told: Any) -> int:
    """Do TASK and print the answer.

    What comes on stdin is added to it. The answer goes to stdout, everything else to stderr.
    """
    text = read_task(task)
    if not text:
        raise UserError("There is no task.", next=['sylph "what is to be done"', "sylph chat"])
    options = TaskOptions(**told)
    return cli.run(lambda app: run_task(app, options, text))


async def run_task(app: App, options: TaskOptions, text: str) -> int:
    """Sends the task and follows its turn to the end; the exit code tells how it went."""
    files = read_attachments(options.attach)
    if options.key is not None:
        return await idempotent_run.run_once(app, options, text, lambda: open_session(app, options))
    runner = TerminalTurnRunner(app, quiet=options.quiet, as_json=options.as_json)
    summary = await open_session(app, options)
    runner.print_lines(*await resume_reminder(app.runtime, Path(summary.workspace), but=summary.id))
    if files and app.lacks_vision(summary.model):
        runner.print_lines(
            styled_line(f"{one_line(summary.model)} takes no pictures: it is only told what they are called", "warn")
        )
    return await runner.run_turn(summary, Send(text=text, dry_run=options.dry_run, files=files))
