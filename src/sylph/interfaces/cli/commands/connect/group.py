"""`sylph connect`: keys, logins and other tools' credentials, each kept only after it was shown to work."""

import sys
from typing import Any

import click

from sylph.compose.credentials import login_services, open_credential_store
from sylph.core.errors import UserError
from sylph.core.text.formatting import count_noun
from sylph.interfaces.actions.credential_storage import resolve_provider
from sylph.interfaces.cli.commands.connect import credential_setup
from sylph.interfaces.cli.commands.connect.credential_setup import ConnectRequest
from sylph.interfaces.cli.commands.connect.credential_table import show_credentials
from sylph.interfaces.cli.kit.cli_context import CliContext, ask_passphrase, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.secret_prompt import read_new_passphrase, require_consent
from sylph.providers.credentials import encryption
from sylph.providers.credentials.store import CredentialStore

ANY_PROVIDER = "PROVIDER"
# What is longer, or begins like this, is not the name of a provider: somebody gave a key.
LONGEST_NAME, KEY_PREFIXES = 32, ("sk-", "gsk_", "xai-", "AIza")


class ConnectGroup(click.Group):
    """A first word that is no command is a provider."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        named = args[0] not in self.commands
        return super().resolve_command(ctx, [ANY_PROVIDER, *args] if named else [args[0], *args[1:]])


@click.group(cls=ConnectGroup, invoke_without_command=True)
@json_option
@click.pass_obj
@click.pass_context
def command(context: click.Context, cli: CliContext, *, as_json: bool) -> int | None:
    """Save a key, or log in to a service: `sylph connect openai`. Alone it shows what is connected and what could be.

    A key is asked for without an echo and checked before it is kept; it is never an argument, which others could see.

    \b
      sylph connect anthropic
      pass show groq | sylph connect groq --stdin
      sylph connect chatgpt
      sylph connect anthropic --from claude-code
    """
    return None if context.invoked_subcommand else show_credentials(cli, as_json=as_json)


@command.command(ANY_PROVIDER)
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
def connect_provider(cli: CliContext, more: tuple[str, ...], **told: Any) -> int:
    """Save a key of PROVIDER, or log in to it."""
    if more:
        raise _exposed_key_error()
    wish = ConnectRequest(**told)
    name = _known_provider(cli, wish.provider)
    if wish.tool:
        return credential_setup.borrow_login(cli, wish, name)
    if name in login_services(cli.config):
        return credential_setup.log_in(cli, wish, name)
    return credential_setup.save_key(cli, wish, name)


@command.command()
@json_option
@click.pass_obj
def status(cli: CliContext, *, as_json: bool) -> int:
    """Show what is connected, where each key comes from, and which other tools have logins here."""
    return show_credentials(cli, as_json=as_json)


@command.command()
@click.option("--remove", is_flag=True, help="Keep credentials without a passphrase from now on.")
@click.option("--forget", is_flag=True, help="Drop a forgotten passphrase, and what is sealed with it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--stdin", "stdin", is_flag=True, help="Read the new passphrase from stdin.")
@click.pass_obj
def passphrase(cli: CliContext, *, remove: bool, forget: bool, yes: bool, stdin: bool) -> int:
    """Set, change, remove or forget the passphrase that credentials in files are sealed with.

    The one that is set now comes from SYLPH_PASSPHRASE, or is asked for. Credentials in the system's keyring need none.
    """
    store = open_credential_store(cli.config, ask_passphrase)
    if forget:
        return _forget_passphrase(store, yes=yes)
    encryption.require_library()
    there = store.read_vault() is not None
    if remove:
        if not there:
            raise UserError("No passphrase is set.", kind="not_found", next=["sylph connect passphrase"])
        opened = count_noun(store.remove_passphrase(), "credential")
        print_text(f"The passphrase is removed; {opened} opened, to lie in files that only you can read.")
        return 0
    if there:
        store.unlock_key()
    sealed = store.set_passphrase(read_new_passphrase(stdin=stdin))
    print_text(f"The passphrase is {'changed' if there else 'set'}; {count_noun(sealed, 'credential')} newly sealed.")
    sys.stderr.write("sylph: without it the credentials cannot be opened by anybody: keep it somewhere safe.\n")
    return 0


def _forget_passphrase(store: CredentialStore, *, yes: bool) -> int:
    if not store.has_passphrase:
        raise UserError("No passphrase is set.", kind="not_found", next=["sylph connect passphrase"])
    lost = [f"{provider} ({kind})" for provider, kind in store.list_sealed()]
    require_consent(
        f"Sealed with it, and lost then: {', '.join(lost) or 'nothing'}.", "Forget the passphrase, and these?", yes=yes
    )
    gone = dict.fromkeys(provider for provider, _ in store.forget_sealed())
    print_text("The passphrase is forgotten." + (" Connect these anew:" if gone else ""))
    for each in gone:
        print_text(f"  sylph connect {each}")
    return 0


def _known_provider(cli: CliContext, name: str) -> str:
    if name not in cli.config.settings.providers and (len(name) > LONGEST_NAME or name.startswith(KEY_PREFIXES)):
        raise _exposed_key_error()
    return resolve_provider(name, cli.config)


def _exposed_key_error() -> UserError:
    """Whatever it was is not said again."""
    return UserError(
        "A key is never given as an argument: it is in your shell's history now, and others could see it.",
        next=["make a new key, and revoke this one", "sylph connect PROVIDER  asks for it, or reads it with --stdin"],
    )
