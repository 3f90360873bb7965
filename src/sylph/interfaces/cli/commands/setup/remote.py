"""`sylph remote`: where a folder's commits go, as whom, and with which key."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from sylph.core.errors import UserError
from sylph.core.permission.path_policy import real_path
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option

if TYPE_CHECKING:
    from sylph.tools.git.remote.settings import GitRemote, GitRemoteStore


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Show, set and try the git remote of the folder you are in: its address, who commits, its SSH key."""


@command.command("show")
@json_option
@click.pass_obj
def show_remote(cli: CliContext, *, as_json: bool) -> int:
    """Show what is set. Of the key, its public half."""
    remotes, remote = _current_remote(cli)
    public = remotes.public_key(Path(remote.root))
    if as_json:
        return print_json({"remote": {**to_builtins(remote), "public_key": public}})
    told = {"remote": remote.name, "url": remote.url, "branch": remote.branch, "name": remote.user}
    told |= {"email": remote.email, "known hosts": str(len(remote.known_hosts)), "public key": public}
    print_table([[name, value] for name, value in told.items() if value])
    return 0


@command.command("set")
@click.option("--name", default=None, help="What git calls it; origin if nothing is said.")
@click.option("--url", default=None, help="https://…, ssh://… or user@host:path.")
@click.option("--branch", default=None, help="The branch that follows it.")
@click.option("--user", default=None, help="Who commits.")
@click.option("--email", default=None, help="Their address.")
@click.option("--known-hosts", type=click.File(), default=None, help="Hosts to trust, as ssh-keyscan prints them.")
@click.option("--key", type=click.File(), default=None, help="A private key without passphrase.")
@click.pass_obj
def set_remote(cli: CliContext, **given: Any) -> int:
    """Set something of it; the rest stays.

    \b
    sylph remote set --url git@git.example:ann/project.git --branch main
    ssh-keyscan git.example | sylph remote set --known-hosts -
    """
    from sylph.tools.git.remote import ssh_keys
    from sylph.tools.git.remote.configure import apply_remote
    from sylph.tools.git.remote.validation import validate_remote

    remotes, remote = _current_remote(cli)
    told = {name: given[name] for name in ("name", "url", "branch", "user", "email") if given[name] is not None}
    if hosts := given["known_hosts"]:
        lines = (line.strip() for line in str(hosts.read()).splitlines())
        told["known_hosts"] = tuple(line for line in lines if line and not line.startswith("#"))
    remote = validate_remote(replace(remote, **told))
    environ = cli.base_config.environ

    async def do() -> tuple[bytes, str] | None:
        key = given["key"]
        pair = await ssh_keys.derive_public_key(key.read(), remotes.secret_folder(), environ) if key else None
        await apply_remote(remote, environ)
        return pair

    if pair := asyncio.run(do()):
        remotes.save_key(Path(remote.root), *pair)
    remotes.save(remote)
    return 0


@command.command("key")
@click.option("--replace", "again", is_flag=True, help="Give up the key that there is.")
@click.pass_obj
def make_key(cli: CliContext, *, again: bool) -> int:
    """Make an SSH key and print its public half, for the other side to let in."""
    from sylph.tools.git.remote import ssh_keys

    remotes, remote = _current_remote(cli)
    root = Path(remote.root)
    if remotes.key_path(root) and not again:
        raise UserError(
            "There is a key already.", kind="exists", next=["sylph remote show", "sylph remote key --replace"]
        )
    private, public = asyncio.run(ssh_keys.generate_key("sylph", remotes.secret_folder(), cli.base_config.environ))
    remotes.save_key(root, private, public)
    remotes.save(remote)
    print_text(public)
    return 0


@command.command("test")
@click.option("--push", is_flag=True, help="Also whether it would take a commit; none is sent.")
@json_option
@click.pass_obj
def test_remote(cli: CliContext, *, push: bool, as_json: bool) -> int:
    """Try to reach it with what is set."""
    from sylph.tools.git.remote.probe import probe_remote

    remotes, remote = _current_remote(cli)
    told = asyncio.run(probe_remote(remotes, remote, cli.base_config.environ, push=push))
    if as_json:
        print_json({"test": told})
    else:
        print_text(told.detail)
        lines = [f"it shows {each.fingerprint}: {each.line}" for each in told.host_keys]
        sys.stderr.writelines(f"{line}\n" for line in (*told.next, *lines))
    return 0 if told.ok else exit_code.FAILED.number


@command.command("remove")
@click.pass_obj
def remove_remote(cli: CliContext) -> int:
    """Forget what is set, and the key. The repository's own remote stays."""
    remotes, remote = _current_remote(cli)
    if not remotes.remove(Path(remote.root)):
        raise UserError("Nothing is set here.", kind="not_found", next=["sylph remote set --url …"])
    return 0


def _current_remote(cli: CliContext) -> "tuple[GitRemoteStore, GitRemote]":
    from sylph.compose.engine import build_git_remotes
    from sylph.tools.git.remote.configure import remote_from_repository

    remotes, root = build_git_remotes(cli.base_config), real_path(Path.cwd())
    return remotes, remotes.load(root) or remote_from_repository(root)
