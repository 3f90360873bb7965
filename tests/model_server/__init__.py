"""A model server that follows a script: real HTTP over loopback, and every trouble a real one can make.

In a test:

    async with ModelServer([say("Hello"), call("read", path="a.txt"), say("Done")]) as server:
        ...                       # server.url is a base URL, server.requests what was asked

As a process, for programs under test and benches; it prints its base URL:

    python tests/model_server --port 0 --script script.json

A script is a list of steps, taken in order; or a mapping from a piece of text to such a list, for whichever request
has that text in its latest matching user message; or, in-process, a function from the request to a step.

It speaks the dialects that it is told to: `ModelServer(script, dialects=("responses", "ollama"))`. `script` holds what
a step may say, each dialect its own file, `server` the connections, `websocket` the frames.
"""

from tests.model_server.script import Asked, Script, Step, assert_extends, begin, call, calls, fail, garbage, load, say
from tests.model_server.server import ModelServer

__all__ = [
    "Asked",
    "ModelServer",
    "Script",
    "Step",
    "assert_extends",
    "begin",
    "call",
    "calls",
    "fail",
    "garbage",
    "load",
    "say",
]
