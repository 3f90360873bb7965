"""`sylph` alone: the chat with the best model there is; without any model, the tour."""

import sys
from typing import Any

import click

from sylph.core.errors import NoModel
from sylph.interfaces.cli import tour
from sylph.interfaces.cli.chat import converse
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.intake import piped, task_of
from sylph.interfaces.cli.options import Options, work
from sylph.interfaces.cli.run import perform


@click.command(hidden=True)
@work()
@click.pass_obj
def command(door: Door, **told: Any) -> int:
    """Open the chat. What comes on stdin is a task instead."""
    options = Options(**told)
    if piped() and (text := task_of(())):
        return door.run(lambda app: perform(app, options, text))
    try:
        return door.run(lambda app: converse(app, options))
    except NoModel as error:
        if error.trouble.kind != NoModel.kind:
            # Something is set up and does not work: that is to be mended, not toured.
            raise
        sys.stderr.write(
            "sylph: no model was found, so here is the tour (`sylph doctor` tells what was looked for; "
            "`sylph models install small` brings a small one to chat with).\n"
        )
        return tour.run(door.config)
