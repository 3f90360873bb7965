"""`sylph disconnect`: forgets the credentials of a service."""

import sys

import click

from sylph.access import credentials_of
from sylph.core.errors import UserError
from sylph.core.similar import guess
from sylph.interfaces.cli.door import Door, ask_passphrase, put

WORDS = {"key": "the key", "login": "the login", "borrowed": "the yes to another tool's login"}


@click.command()
@click.argument("provider")
@click.pass_obj
def command(door: Door, provider: str) -> int:
    """Forget the key and the login of PROVIDER, also damaged ones.

    They are gone from this machine; what the service gave out stays good until you revoke it there.
    """
    try:
        config = door.config
    except UserError:
        config = door.place
    store = credentials_of(config, ask_passphrase)
    known = store.kinds()
    if provider not in known:
        raise UserError(
            f"Nothing of {provider!r} is stored.{guess(provider, known)}",
            kind="not_found",
            next=["sylph connect status"],
        )
    gone = store.remove(provider)
    put(f"{provider}: {' and '.join(WORDS[kind] for kind in gone)} forgotten.")
    if origin := config.origins.get(f"providers.{provider}.api_key"):
        sys.stderr.write(f"sylph: {origin} is still set.\n")
    return 0
