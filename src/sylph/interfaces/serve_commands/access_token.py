"""`sylph token`: credentials for programs and browsers that talk to the server."""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from sylph.core.clock import SystemClock
from sylph.core.errors import UserError
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.text.render import format_age

if TYPE_CHECKING:
    from sylph.interfaces.http.security.token_store import ServerToken, ServerTokenStore

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SCOPES = "read, chat, approve, admin or hook"


class TimeSpanParam(click.ParamType[float]):
    """A span of time like `30d`, in seconds."""

    name = "SPAN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number, unit = str(value)[:-1], UNIT_SECONDS.get(str(value)[-1:].lower(), 0)
        seconds = int(number) * unit if number.isdecimal() and len(number) < 7 else 0
        if not 0 < seconds <= 3650 * UNIT_SECONDS["d"]:
            self.fail(f"{value!r} is no span of time: give one like 90m, 12h, 30d or 8w.", param, ctx)
        return float(seconds)


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Make, list and revoke tokens for the server; log a browser in.

    \b
    sylph token create laptop --scope read --scope chat --expires 30d
    sylph token link
    """


@command.command("create")
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, default=("read",), help=f"{SCOPES}; several times for more.")
@click.option("--expires", type=TimeSpanParam(), help="When it ends, from now: 90m, 12h, 30d, 8w. Never, if left out.")
@json_option
@click.pass_obj
def create_token(cli: CliContext, *, name: str, scopes: tuple[str, ...], expires: float | None, as_json: bool) -> int:
    """Make a token. It is shown this once.

    \b
    sylph token create laptop --scope read --scope chat
    sylph token create phone --scope admin --expires 30d
    sylph token create github --scope hook
    """
    with closing(_open_token_store(cli)) as keys:
        key, secret = keys.create_token("token", name, scopes, expires)
        same = [
            each.id
            for each in keys.list_tokens()
            if each.kind == "token" and each.name == key.name and each.id != key.id
        ]
    if same:
        click.echo(f"There is another token named {key.name!r}, which stays good: {', '.join(same)}.", err=True)
    if as_json:
        return print_json({"key": key, "token": secret})
    print_text(secret)
    return 0


@command.command("list")
@json_option
@click.pass_obj
def list_tokens(cli: CliContext, *, as_json: bool) -> int:
    """List tokens, logins and links that are good."""
    with closing(_open_token_store(cli)) as keys:
        found = keys.list_tokens()
    if as_json:
        return print_json({"keys": found})
    if not found:
        print_text("There are none: sylph token create NAME")
        return 0
    print_table([["id", "kind", "name", "scopes", "made", "used", "ends"], *map(_token_row, found)], drop=(4, 5, 6))
    return 0


@command.command("revoke")
@click.argument("id")
@json_option
@click.pass_obj
def revoke_token(cli: CliContext, *, id: str, as_json: bool) -> int:
    """Revoke a token or a login: it is refused from now on, and what it follows ends.

    \b
    sylph token list
    sylph token revoke 7kq2mzxw4tbd
    """
    with closing(_open_token_store(cli)) as keys:
        keys.revoke(id)
    return print_json({"revoked": id}) if as_json else 0


@command.command("link")
@click.option("--name", default="link", show_default=True, help="What the login will be known by.")
@click.option("--scope", "scopes", multiple=True, default=("admin",), help=f"What it may: {SCOPES}.")
@click.option("--qr", is_flag=True, help="Show it as a QR code, too, for a phone.")
@json_option
@click.pass_obj
def create_login_link(cli: CliContext, *, name: str, scopes: tuple[str, ...], qr: bool, as_json: bool) -> int:
    """Print a link that logs a browser in: once, within ten minutes. The server must be running.

    \b
    sylph token link
    sylph token link --name phone --scope read --scope chat --scope approve --qr
    """
    made = _post_to_server(cli, "/api/v1/links", {"name": name, "scopes": scopes})
    if as_json:
        return print_json(made)
    print_text(made["url"])
    if fingerprint := made.get("fingerprint"):
        print_text(f"SHA-256 fingerprint of the certificate: {fingerprint}")
    if qr:
        from sylph.interfaces.serve_commands.greeting import qr_code

        print_text(qr_code(made["url"]))
    return 0


def _token_row(key: "ServerToken") -> list[str]:
    now = SystemClock().now()
    hours = (key.expires - now) // 3_600_000 if key.expires else 0
    ends = "" if not key.expires else f"in {hours // 24} days" if hours >= 48 else f"in {hours} h" if hours else "soon"
    used = format_age(key.used, now) if key.used else "never"
    return [key.id, key.kind, key.name, " ".join(key.scopes), format_age(key.created, now), used, ends]


def _open_token_store(cli: CliContext) -> "ServerTokenStore":
    from sylph.interfaces.http.security.token_store import ServerTokenStore

    return ServerTokenStore(cli.base_config.data / "keys.db")


def _post_to_server(cli: CliContext, path: str, body: object) -> Any:
    """What the running server answers, by its owner's socket."""
    import http.client

    import msgspec

    from sylph.interfaces.local_socket.unix_socket import SOCKET_NAME, connect_socket

    class Own(http.client.HTTPConnection):
        def connect(self) -> None:
            if (found := connect_socket(cli.base_config.data / SOCKET_NAME, 10)) is None:
                raise ConnectionRefusedError
            self.sock = found

    with closing(Own("sylph")) as own:
        try:
            own.request("POST", path, msgspec.json.encode(body), {"Content-Type": "application/json"})
            answer = own.getresponse()
            told = msgspec.json.decode(answer.read())
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            raise UserError("No server is running.", kind="no_server", next=["sylph serve"]) from error
    if answer.status >= 400:
        raise UserError(told["detail"], kind=told["kind"], next=told.get("next", ()))
    return told
