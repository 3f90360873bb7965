"""`sylph disconnect`: forgets the credentials of a service."""

import sys

import click

from sylph.compose.credentials import open_credential_store
from sylph.core.errors import UserError
from sylph.core.text.suggestion import suggest_word
from sylph.interfaces.cli.kit.cli_context import CliContext, ask_passphrase, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option

KIND_PHRASES = {
    "key": "the key of {}",
    "login": "the login of {}",
    "borrowed": "the yes to another tool's login for {}",
}


@click.command()
@click.argument("provider")
@json_option
@click.pass_obj
def command(cli: CliContext, provider: str, *, as_json: bool) -> int:
    """Forget the key and the login of PROVIDER, also damaged ones.

    They are gone from this machine; what the service gave out stays good until you revoke it there.
    """
    try:
        config = cli.config
    except UserError:
        config = cli.base_config
    store = open_credential_store(config, ask_passphrase)
    known = store.preferred_kinds()
    if provider not in known:
        raise UserError(
            f"Nothing of {provider!r} is stored.{suggest_word(provider, known)}",
            kind="not_found",
            next=["sylph connect status"],
        )
    locked = store.has_passphrase
    gone = store.remove(provider)
    unlocked, origin = locked and not store.has_passphrase, config.origins.get(f"providers.{provider}.api_key", "")
    if as_json:
        return print_json({"provider": provider, "forgotten": gone, "passphrase_gone": unlocked, "still_set": origin})
    what = " and ".join(KIND_PHRASES[kind].format(provider) for kind in gone)
    print_text(f"{what[:1].upper()}{what[1:]} {'are' if len(gone) > 1 else 'is'} forgotten.")
    if unlocked:
        sys.stderr.write("sylph: nothing sealed is left, so the passphrase is gone too: sylph connect passphrase\n")
    if origin:
        sys.stderr.write(f"sylph: {origin} is still set.\n")
    return 0
