"""`sylph serve`: the runtime as a server."""

import sys

import click

from sylph.app import App
from sylph.interfaces.cli.door import Door, put

PORT = 8090


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 for any.")
@click.pass_obj
def command(door: Door, *, host: str, port: int) -> int:
    """Serve the API until Ctrl-C.

    \b
    sylph serve
    sylph serve --port 0
    """

    async def work(app: App) -> int:
        from sylph.interfaces.http.server import House, Place, serve

        def ready(_: House, url: str) -> None:
            put(f"Sylph serves at {url}")
            sys.stdout.flush()

        await serve(app, Place(host=host, port=port), ready)
        return 0

    return door.run(work)
