"""`sylph erase`: takes a secret out of a session's log, for good."""

import getpass
import sys

import click

from sylph.app import App
from sylph.core.errors import UserError
from sylph.core.text.formatting import count_noun
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids


@click.command()
@click.argument("session", shell_complete=complete_session_ids)
@click.option("--why", default="", help="What to write down as the reason.")
@json_option
@click.pass_obj
def command(cli: CliContext, session: str, why: str, *, as_json: bool) -> int:
    """Take a secret out of everything SESSION holds: messages, answers, outputs.

    The secret is asked for without an echo, or read from stdin; it is never an argument, which other users could see.
    The hash chain still verifies afterwards: the log keeps a commitment to what was there, and nothing else of it.

    \b
      sylph erase last
      pass show bank | sylph erase k3x --why "a password"
    """
    secret = _read_secret()

    async def work(app: App) -> tuple[str, int]:
        id = (await app.runtime.find_session(session)).id
        return id, await app.runtime.erase_secret(id, secret, why)

    id, places = cli.run(work)
    if as_json:
        return print_json({"session": id, "places": places})
    print_text(f"Erased in {count_noun(places, 'place')} of {id}." if places else f"It is nowhere in {id}.")
    return 0


def _read_secret() -> str:
    text = getpass.getpass("The secret (not shown): ") if sys.stdin.isatty() else sys.stdin.read()
    secret = text.rstrip("\n")
    if not secret:
        raise UserError("There is no secret to erase.", next=["Give it on stdin, or type it at the prompt."])
    return secret
