"""`sylph prove`: what Sylph promises, proven on this machine. Each proof is a module of its own."""

import click

from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.prove_budget import budget
from sylph.interfaces.cli.prove_crash import crash
from sylph.interfaces.cli.prove_replay import replay
from sylph.interfaces.cli.prove_sandbox import sandbox
from sylph.interfaces.cli.prove_secrets import secrets


@click.group(cls=Group)
def command() -> None:
    """Prove what Sylph promises, here and now."""


command.add_command(budget)
command.add_command(crash)
command.add_command(replay)
command.add_command(sandbox)
command.add_command(secrets)
