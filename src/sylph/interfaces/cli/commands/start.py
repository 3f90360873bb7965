"""`sylph` alone: the chat with the best model there is; without any model, the tour."""

import sys
from typing import Any

import click

from sylph.core.errors import NoModel
from sylph.interfaces.cli.commands import tour
from sylph.interfaces.cli.commands.chat import start_chat
from sylph.interfaces.cli.commands.run import run_task
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.kit.options import TaskOptions, task_options
from sylph.interfaces.cli.kit.task_input import has_piped_input, read_task


@click.command(hidden=True)
@task_options()
@click.pass_obj
def command(cli: CliContext, **told: Any) -> int:
    """Open the chat. What comes on stdin is a task instead."""
    options = TaskOptions(**told)
    if has_piped_input() and (text := read_task(())):
        return cli.run(lambda app: run_task(app, options, text))
    try:
        return cli.run(lambda app: start_chat(app, options))
    except NoModel as error:
        if error.trouble.kind != NoModel.kind:
            # Something is set up and does not work: that is to be mended, not toured.
            raise
        sys.stderr.write(
            "sylph: no model was found, so here is the tour (`sylph doctor` tells what was looked for; "
            "`sylph models install small` brings a small one to chat with).\n"
        )
        return tour.run_tour(cli.config)
