"""`sylph connect`: keys, logins and other tools' credentials, each kept only after it was shown to work."""

import sys
from typing import Any

import click

from sylph.access import credentials_of, services_of
from sylph.core.errors import UserError
from sylph.core.text import count
from sylph.interfaces.cli import connecting
from sylph.interfaces.cli.connected import show
from sylph.interfaces.cli.connecting import Wish
from sylph.interfaces.cli.door import Door, ask_passphrase, put
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.secrets import agreed, fresh_passphrase
from sylph.interfaces.saving import provider_named
from sylph.providers.credentials import seal
from sylph.providers.credentials.store import Store

ANY = "PROVIDER"
# What is longer, or begins like this, is not the name of a provider: somebody gave a key.
LONGEST, KEYS = 32, ("sk-", "gsk_", "xai-", "AIza")


class Connect(click.Group):
    """A first word that is no command is a provider."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        named = args[0] not in self.commands
        return super().resolve_command(ctx, [ANY, *args] if named else [args[0], *args[1:]])


@click.group(cls=Connect, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, door: Door, *, as_json: bool) -> int | None:
    """Save a key, or log in to a service: `sylph connect openai`. Alone it shows what is connected and what could be.

    A key is asked for without an echo and checked before it is kept; it is never an argument, which others could see.

    \b
      sylph connect anthropic
      pass show groq | sylph connect groq --stdin
      sylph connect chatgpt
      sylph connect anthropic --from claude-code
    """
    return None if context.invoked_subcommand else show(door, as_json=as_json)


@command.command(ANY)
@click.argument("provider", metavar="")
@click.argument("more", nargs=-1, metavar="")
@click.option("--stdin", "stdin", is_flag=True, help="Read the key from stdin.")
@click.option("--no-check", is_flag=True, help="Keep the key without asking the service whether it is good.")
@click.option("--device", is_flag=True, help="Log in by a code that you type in on any device.")
@click.option("--browser", is_flag=True, help="Log in with the browser of this machine.")
@click.option("--no-browser", is_flag=True, help="Only print the link; open no browser.")
@click.option("--from", "tool", default="", metavar="TOOL", help="Use another tool's login; asked for, and remembered.")
@click.option("--yes", is_flag=True, help="Agree to the terms that are shown.")
@click.pass_obj
def provider(door: Door, more: tuple[str, ...], **told: Any) -> int:
    """Save a key of PROVIDER, or log in to it."""
    if more:
        raise _shown()
    wish = Wish(**told)
    name = _known(door, wish.provider)
    if wish.tool:
        return connecting.borrow(door, wish, name)
    if name in services_of(door.config):
        return connecting.log_in(door, wish, name)
    return connecting.save_key(door, wish, name)


@command.command()
@json_option
@click.pass_obj
def status(door: Door, *, as_json: bool) -> int:
    """Show what is connected, where each key comes from, and which other tools have logins here."""
    return show(door, as_json=as_json)


@command.command()
@click.option("--remove", is_flag=True, help="Keep credentials without a passphrase from now on.")
@click.option("--forget", is_flag=True, help="Drop a forgotten passphrase, and what is sealed with it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--stdin", "stdin", is_flag=True, help="Read the new passphrase from stdin.")
@click.pass_obj
def passphrase(door: Door, *, remove: bool, forget: bool, yes: bool, stdin: bool) -> int:
    """Set, change, remove or forget the passphrase that credentials in files are sealed with.

    The one that is set now comes from SYLPH_PASSPHRASE, or is asked for. Credentials in the system's keyring need none.
    """
    store = credentials_of(door.config, ask_passphrase)
    if forget:
        return _forget(store, yes=yes)
    seal.need()
    there = store.vault() is not None
    if remove:
        if not there:
            raise UserError("No passphrase is set.", kind="not_found", next=["sylph connect passphrase"])
        opened = count(store.remove_passphrase(), "credential")
        put(f"The passphrase is removed; {opened} opened, to lie in files that only you can read.")
        return 0
    if there:
        store.key()
    sealed = store.set_passphrase(fresh_passphrase(stdin=stdin))
    put(f"The passphrase is {'changed' if there else 'set'}; {count(sealed, 'credential')} newly sealed.")
    sys.stderr.write("sylph: without it the credentials cannot be opened by anybody: keep it somewhere safe.\n")
    return 0


def _forget(store: Store, *, yes: bool) -> int:
    if not store.locked:
        raise UserError("No passphrase is set.", kind="not_found", next=["sylph connect passphrase"])
    lost = [f"{provider} ({kind})" for provider, kind in store.sealed()]
    agreed(
        f"Sealed with it, and lost then: {', '.join(lost) or 'nothing'}.", "Forget the passphrase, and these?", yes=yes
    )
    gone = dict.fromkeys(provider for provider, _ in store.forget())
    put("The passphrase is forgotten." + (" Connect these anew:" if gone else ""))
    for each in gone:
        put(f"  sylph connect {each}")
    return 0


def _known(door: Door, name: str) -> str:
    if name not in door.config.settings.providers and (len(name) > LONGEST or name.startswith(KEYS)):
        raise _shown()
    return provider_named(name, door.config)


def _shown() -> UserError:
    """Whatever it was is not said again."""
    return UserError(
        "A key is never given as an argument: it is in your shell's history now, and others could see it.",
        next=["make a new key, and revoke this one", "sylph connect PROVIDER  asks for it, or reads it with --stdin"],
    )
