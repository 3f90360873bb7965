"""`sylph serve`: the runtime as a server, started, looked at and ended."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from msgspec.structs import asdict, replace

from sylph.app import App
from sylph.config import Config, Server
from sylph.config.settings import Tls
from sylph.core.errors import UserError
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.own.resident import Resident, resident, stop

if TYPE_CHECKING:
    from sylph.interfaces.http.house import House

# Longer than requests and turns get to come to their end.
ENDING = 20.0
# What decides where everything lies.
PLACES = ("SYLPH_HOME", "SYLPH_DATA", "SYLPH_CONFIG")


@click.command()
@click.option("--host", help="Address to listen on; another than this machine's own needs TLS.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 for any that is free.  [default: 8090]")
@click.option("--tls", type=click.Choice(get_args(Tls)), help="`self`: with a certificate that Sylph makes and renews.")
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
    door: Door, fd: int | None, task: str | None, *, as_json: bool, **given: str | int | tuple[str, ...] | None
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
            return _status(resident(door.place.data), as_json=as_json)
        case "stop":
            return _stop(stop(door.place.data, ENDING), as_json=as_json)
        case "unit":
            return _unit(door.place, said)
        case _:
            return _serve(door, replace(door.config.settings.server, **said), fd)


def _serve(door: Door, server: Server, fd: int | None) -> int:
    if other := resident(door.place.data):
        raise other.occupied()

    async def work(app: App) -> int:
        from sylph.interfaces.cli.follow import beside
        from sylph.interfaces.cli.welcome import farewell, greet, tell_model
        from sylph.interfaces.http.server import serve
        from sylph.interfaces.http.systemd import passed_on

        _unlock(app)
        given = passed_on(app.config.environ) if fd is None else fd
        greeted = asyncio.Event()

        def ready(house: "House") -> None:
            greet(house)
            greeted.set()

        async def tell() -> None:
            await greeted.wait()
            await tell_model(app)

        async with beside(tell()):
            left = await serve(app, server, ready, seen=sys.stdout.isatty(), fd=given)
        farewell(left, resumes=server.resume)
        return 0

    return door.run(work, alone=True)


def _unlock(app: App) -> None:
    """Asks for the passphrase now: later nobody is there who could be asked. Nobody now is no reason not to serve."""
    try:
        app.unlock()
    except UserError as error:
        if sys.stderr.isatty():
            raise
        sys.stderr.write(f"sylph: {error} Models that need them cannot be used: start it with SYLPH_PASSPHRASE.\n")
    if app.ways:
        app.ways.hush()


def _status(found: Resident | None, *, as_json: bool) -> int:
    if as_json:
        put_json({"running": found is not None, **(asdict(found) if found else {})})
    else:
        put(found.told if found else "No server of this home runs.")
    return 0 if found else codes.FAILED.number


def _stop(ended: Resident | None, *, as_json: bool) -> int:
    if as_json:
        return put_json({"ended": ended is not None, **(asdict(ended) if ended else {})})
    put(f"The server (process {ended.pid}) has ended." if ended else "No server of this home runs.")
    return 0


def _unit(place: Config, said: dict[str, str | int | tuple[str, ...]]) -> int:
    from sylph.interfaces.http.systemd import unit

    options: list[str] = []
    for name, value in said.items():
        for each in value if isinstance(value, tuple) else (value,):
            options += [{"names": "--name"}.get(name, f"--{name.replace('_', '-')}"), str(each)]
    environment = {name: place.environ[name] for name in PLACES if place.environ.get(name)}
    if any("\n" in each for each in (*environment.values(), *options)):
        raise UserError("A line break cannot stand in a unit.")
    put(unit(str(place.home), str(Path.cwd()), environment, options).rstrip("\n"))
    return 0
