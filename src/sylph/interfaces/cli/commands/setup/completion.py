"""`sylph completion`: what a shell needs to complete commands, options and ids."""

import click
from click.shell_completion import get_completion_class

from sylph.interfaces.cli.kit.cli_context import print_text

INSTALL = {
    "bash": "# For every new shell:  sylph completion bash >> ~/.bashrc",
    "zsh": "# For every new shell:  sylph completion zsh >> ~/.zshrc",
    "fish": "# For every new shell:  sylph completion fish > ~/.config/fish/completions/sylph.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL)))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the completion script for SHELL. Try it: eval "$(sylph completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the shells of the choice above"
    root = context.find_root().command
    print_text(f"{INSTALL[shell]}\n{kind(root, {}, 'sylph', '_SYLPH_COMPLETE').source()}")
    return 0
