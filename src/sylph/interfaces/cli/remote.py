"""`sylph remote`: where a folder's commits go, as whom, and with which key."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from sylph.core.errors import UserError
from sylph.core.places import real
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option

if TYPE_CHECKING:
    from sylph.tools.git.remotes import Remote, Remotes


@click.group(cls=Group)
def command() -> None:
    """Show, set and try the git remote of the folder you are in: its address, who commits, its SSH key."""


@command.command("show")
@json_option
@click.pass_obj
def show(door: Door, *, as_json: bool) -> int:
    """Show what is set. Of the key, its public half."""
    remotes, remote = _here(door)
    public = remotes.public(Path(remote.root))
    if as_json:
        return put_json({"remote": {**to_builtins(remote), "public_key": public}})
    told = {"remote": remote.name, "url": remote.url, "branch": remote.branch, "name": remote.user}
    told |= {"email": remote.email, "known hosts": str(len(remote.known_hosts)), "public key": public}
    put_table([[name, value] for name, value in told.items() if value])
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
def set_(door: Door, **given: Any) -> int:
    """Set something of it; the rest stays.

    \b
    sylph remote set --url git@git.example:ann/project.git --branch main
    ssh-keyscan git.example | sylph remote set --known-hosts -
    """
    from sylph.tools.git import sshkeys
    from sylph.tools.git.apply import apply
    from sylph.tools.git.checks import checked

    remotes, remote = _here(door)
    told = {name: given[name] for name in ("name", "url", "branch", "user", "email") if given[name] is not None}
    if hosts := given["known_hosts"]:
        lines = (line.strip() for line in str(hosts.read()).splitlines())
        told["known_hosts"] = tuple(line for line in lines if line and not line.startswith("#"))
    remote = checked(replace(remote, **told))
    environ = door.place.environ

    async def do() -> tuple[bytes, str] | None:
        key = given["key"]
        pair = await sshkeys.public_of(key.read(), remotes.scratch(), environ) if key else None
        await apply(remote, environ)
        return pair

    if pair := asyncio.run(do()):
        remotes.keep_key(Path(remote.root), *pair)
    remotes.keep(remote)
    return 0


@command.command("key")
@click.option("--replace", "again", is_flag=True, help="Give up the key that there is.")
@click.pass_obj
def key(door: Door, *, again: bool) -> int:
    """Make an SSH key and print its public half, for the other side to let in."""
    from sylph.tools.git import sshkeys

    remotes, remote = _here(door)
    root = Path(remote.root)
    if remotes.key(root) and not again:
        raise UserError(
            "There is a key already.", kind="exists", next=["sylph remote show", "sylph remote key --replace"]
        )
    private, public = asyncio.run(sshkeys.make("sylph", remotes.scratch(), door.place.environ))
    remotes.keep_key(root, private, public)
    remotes.keep(remote)
    put(public)
    return 0


@command.command("test")
@click.option("--push", is_flag=True, help="Also whether it would take a commit; none is sent.")
@json_option
@click.pass_obj
def test(door: Door, *, push: bool, as_json: bool) -> int:
    """Try to reach it with what is set."""
    from sylph.tools.git.trial import tried

    remotes, remote = _here(door)
    told = asyncio.run(tried(remotes, remote, door.place.environ, push=push))
    if as_json:
        put_json({"test": told})
    else:
        put(told.detail)
        lines = [f"it shows {each.fingerprint}: {each.line}" for each in told.host_keys]
        sys.stderr.writelines(f"{line}\n" for line in (*told.next, *lines))
    return 0 if told.ok else codes.FAILED.number


@command.command("remove")
@click.pass_obj
def remove(door: Door) -> int:
    """Forget what is set, and the key. The repository's own remote stays."""
    remotes, remote = _here(door)
    if not remotes.remove(Path(remote.root)):
        raise UserError("Nothing is set here.", kind="not_found", next=["sylph remote set --url …"])
    return 0


def _here(door: Door) -> "tuple[Remotes, Remote]":
    from sylph.tools.git.apply import present
    from sylph.wiring import remotes_of

    remotes, root = remotes_of(door.place), real(Path.cwd())
    return remotes, remotes.of(root) or present(root)
