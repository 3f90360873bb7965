"""`sylph serve`: the runtime as a server."""

import sys
from typing import get_args

import click
from msgspec.structs import replace

from sylph.app import App
from sylph.config.settings import Tls
from sylph.interfaces.cli.door import Door


@click.command()
@click.option("--host", help="Address to listen on; another than this machine's own needs TLS.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 for any that is free.  [default: 8090]")
@click.option("--tls", type=click.Choice(get_args(Tls)), help="`self`: with a certificate that Sylph makes and renews.")
@click.option("--tls-cert", metavar="FILE", help="Your own certificate, in PEM.")
@click.option("--tls-key", metavar="FILE", help="Its private key; if left out, it is in the same file.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A further name it is asked by; several times.")
@click.pass_obj
def command(door: Door, **given: str | int | tuple[str, ...] | None) -> int:
    """Serve the API until Ctrl-C. What is not said here is read from [server] in the config file.

    \b
    sylph serve
    sylph serve --port 0
    sylph serve --host 0.0.0.0 --tls self
    sylph serve --host 192.168.1.20 --tls-cert cert.pem --tls-key key.pem --name sylph.home.example
    """
    said = {name: value for name, value in given.items() if value is not None and value != ()}
    server = replace(door.config.settings.server, **said)

    async def work(app: App) -> int:
        from sylph.interfaces.cli.welcome import greet
        from sylph.interfaces.http.server import serve

        await serve(app, server, greet, seen=sys.stdout.isatty())
        return 0

    return door.run(work)
