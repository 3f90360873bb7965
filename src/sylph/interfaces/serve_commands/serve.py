"""`sylph serve`: the runtime as a server, started, looked at and ended."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from msgspec.structs import asdict, replace

from sylph.app import App
from sylph.config import Config, ServerSettings
from sylph.config.settings import TlsMode
from sylph.core.errors import UserError
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.local_socket.server_lock import RunningServer, find_running_server, stop_server

if TYPE_CHECKING:
    from sylph.interfaces.http.state.server_state import ServerState

# Longer than requests and turns get to come to their end.
STOP_SECONDS = 20.0
# What decides where everything lies.
LOCATION_VARIABLES = ("SYLPH_HOME", "SYLPH_DATA", "SYLPH_CONFIG")


@click.command()
@click.option("--host", help="Address to listen on; another than this machine's own needs TLS.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 for any that is free.  [default: 8090]")
@click.option(
    "--tls", type=click.Choice(get_args(TlsMode)), help="`self`: with a certificate that Sylph makes and renews."
)
@click.option("--tls-cert", metavar="FILE", help="Your own certificate, in PEM.")
@click.option("--tls-key", metavar="FILE", help="Its private key; if left out, it is in the same file.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A further name it is asked by; several times.")
@click.option("--fd", type=click.IntRange(0), help="Number of a socket that listens already, instead of an address.")
@click.option("--status", "task", flag_value="status", help="Tell whether a server of this home runs, and where.")
@click.option("--stop", "task", flag_value="stop", help="End the server of this home, and wait for its end.")
@click.option("--unit", "task", flag_value="unit", help="Print a unit for systemd, to have it always running.")
@json_option
@click.pass_obj
def command(
    cli: CliContext, fd: int | None, task: str | None, *, as_json: bool, **given: str | int | tuple[str, ...] | None
) -> int:
    """Serve the API until Ctrl-C. What is not said here is read from [server] in the config file.

    While it runs, every other command works through it.

    \b
    sylph serve
    sylph serve --port 0
    sylph serve --host 0.0.0.0 --tls self
    sylph serve --host 192.168.1.20 --tls-cert cert.pem --tls-key key.pem --name sylph.home.example
    sylph serve --status
    sylph serve --stop
    """
    said = {name: value for name, value in given.items() if value is not None and value != ()}
    match task:
        case "status":
            return _print_status(find_running_server(cli.base_config.data), as_json=as_json)
        case "stop":
            return _print_stopped(stop_server(cli.base_config.data, STOP_SECONDS), as_json=as_json)
        case "unit":
            return _print_unit(cli.base_config, said)
        case _:
            return _run_server(cli, replace(cli.config.settings.server, **said), fd)


def _run_server(cli: CliContext, server: ServerSettings, fd: int | None) -> int:
    if other := find_running_server(cli.base_config.data):
        raise other.already_running_error()

    async def work(app: App) -> int:
        from sylph.interfaces.cli.turn.follower import run_in_background
        from sylph.interfaces.http.server.serve import run_server
        from sylph.interfaces.http.server.systemd import inherited_fd
        from sylph.interfaces.serve_commands.greeting import print_farewell, print_greeting, print_model

        _unlock_credentials(app)
        given = inherited_fd(app.config.environ) if fd is None else fd
        greeted = asyncio.Event()

        def ready(state: "ServerState") -> None:
            print_greeting(state)
            greeted.set()

        async def tell() -> None:
            await greeted.wait()
            await print_model(app)

        async with run_in_background(tell()):
            left = await run_server(app, server, ready, seen=sys.stdout.isatty(), fd=given)
        print_farewell(left, resumes=server.resume)
        return 0

    return cli.run(work, alone=True)


def _unlock_credentials(app: App) -> None:
    """Asks for the passphrase now: later nobody is there who could be asked. Nobody now is no reason not to serve."""
    try:
        app.unlock_credentials()
    except UserError as error:
        if sys.stderr.isatty():
            raise
        sys.stderr.write(f"sylph: {error} Models that need them cannot be used: start it with SYLPH_PASSPHRASE.\n")
    if app.credentials:
        app.credentials.stop_asking()


def _print_status(found: RunningServer | None, *, as_json: bool) -> int:
    if as_json:
        print_json({"running": found is not None, **(asdict(found) if found else {})})
    else:
        print_text(found.description if found else "No server of this home runs.")
    return 0 if found else exit_code.FAILED.number


def _print_stopped(ended: RunningServer | None, *, as_json: bool) -> int:
    if as_json:
        return print_json({"ended": ended is not None, **(asdict(ended) if ended else {})})
    print_text(f"The server (process {ended.pid}) has ended." if ended else "No server of this home runs.")
    return 0


def _print_unit(place: Config, said: dict[str, str | int | tuple[str, ...]]) -> int:
    from sylph.interfaces.http.server.systemd import render_unit

    options: list[str] = []
    for name, value in said.items():
        for each in value if isinstance(value, tuple) else (value,):
            options += [{"names": "--name"}.get(name, f"--{name.replace('_', '-')}"), str(each)]
    environment = {name: place.environ[name] for name in LOCATION_VARIABLES if place.environ.get(name)}
    if any("\n" in each for each in (*environment.values(), *options)):
        raise UserError("A line break cannot stand in a unit.")
    print_text(render_unit(str(place.home), str(Path.cwd()), environment, options).rstrip("\n"))
    return 0
