"""`sylph disconnect`: forgets the credentials of a service."""

import sys

import click

from sylph.access import credentials_of
from sylph.core.errors import UserError
from sylph.core.similar import guess
from sylph.interfaces.cli.door import Door, ask_passphrase, put, put_json
from sylph.interfaces.cli.options import as_json as json_option

WORDS = {
    "key": "the key of {}",
    "login": "the login of {}",
    "borrowed": "the yes to another tool's login for {}",
}


@click.command()
@click.argument("provider")
@json_option
@click.pass_obj
def command(door: Door, provider: str, *, as_json: bool) -> int:
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
    locked = store.locked
    gone = store.remove(provider)
    unlocked, origin = locked and not store.locked, config.origins.get(f"providers.{provider}.api_key", "")
    if as_json:
        return put_json({"provider": provider, "forgotten": gone, "passphrase_gone": unlocked, "still_set": origin})
    what = " and ".join(WORDS[kind].format(provider) for kind in gone)
    put(f"{what[:1].upper()}{what[1:]} {'are' if len(gone) > 1 else 'is'} forgotten.")
    if unlocked:
        sys.stderr.write("sylph: nothing sealed is left, so the passphrase is gone too: sylph connect passphrase\n")
    if origin:
        sys.stderr.write(f"sylph: {origin} is still set.\n")
    return 0
