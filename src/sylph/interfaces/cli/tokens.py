"""`sylph token`: credentials for programs that talk to the server."""

from typing import TYPE_CHECKING

import click

from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option

if TYPE_CHECKING:
    from sylph.interfaces.http.keys import Keys


@click.group(cls=Group)
def command() -> None:
    """Make, list and revoke tokens for the server."""


@command.command("create")
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, default=("read",), help="What it may; several times for more.")
@json_option
@click.pass_obj
def create(door: Door, *, name: str, scopes: tuple[str, ...], as_json: bool) -> int:
    """Make a token. It is shown this once.

    \b
    sylph token create laptop --scope read --scope chat
    """
    keys = _keys(door)
    key, secret = keys.make("token", name, scopes)
    keys.close()
    if as_json:
        return put_json({"key": key, "token": secret})
    put(secret)
    return 0


@command.command("list")
@json_option
@click.pass_obj
def list_(door: Door, *, as_json: bool) -> int:
    """List tokens and logins."""
    keys = _keys(door)
    found = keys.all()
    keys.close()
    if as_json:
        return put_json({"keys": found})
    put_table([["id", "kind", "name", "scopes"], *([k.id, k.kind, k.name, " ".join(k.scopes)] for k in found)])
    return 0


@command.command("revoke")
@click.argument("id")
@click.pass_obj
def revoke(door: Door, *, id: str) -> int:
    """Revoke a token or a login: it is refused from now on."""
    keys = _keys(door)
    keys.revoke(id)
    keys.close()
    return 0


def _keys(door: Door) -> "Keys":
    from sylph.interfaces.http.keys import Keys

    return Keys(door.place.data / "keys.db")
