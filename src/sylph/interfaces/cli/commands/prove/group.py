"""`sylph prove`: what Sylph promises, proven on this machine. Each proof is a module of its own."""

import click

from sylph.interfaces.cli.commands.prove.budget import budget
from sylph.interfaces.cli.commands.prove.crash import crash
from sylph.interfaces.cli.commands.prove.replay import replay
from sylph.interfaces.cli.commands.prove.sandbox import sandbox
from sylph.interfaces.cli.commands.prove.secrets import secrets
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Prove what Sylph promises, here and now."""


command.add_command(budget)
command.add_command(crash)
command.add_command(replay)
command.add_command(sandbox)
command.add_command(secrets)
