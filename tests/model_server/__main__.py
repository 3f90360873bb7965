"""The scripted server as a process of its own: it prints its base URL."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

# Started by its path, from wherever.
sys.path[0] = str(Path(__file__).parents[2])

from tests.model_server import ModelServer, Script, load  # noqa: E402 - found by the line above


async def serve(script: Script, given: argparse.Namespace) -> None:
    async with ModelServer(script, port=given.port, loop=given.loop, dialects=given.speak.split(",")) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    options = argparse.ArgumentParser(description="A model server that follows a script.")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--script", type=Path, required=True)
    options.add_argument("--loop", action="store_true", help="begin anew when the script is used up")
    options.add_argument("--speak", default="chat", help="dialects, with commas between")
    given = options.parse_args()
    script = load(json.loads(given.script.read_text()))
    try:
        asyncio.run(serve(script, given))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
