"""The agent itself: what it runs does not get to the socket that its owner comes in by."""

import sys

import pytest
from tests.flows.program import Model, Sylph
from tests.http.served import serving
from tests.model_server import call, say

from sylph.engine.sandbox.layer_probe import LayerProbe

LAYER = LayerProbe().wait_for_layer()
# The path does not stand in the command: of one that names Sylph's own files a person would be asked.
KNOCK = """
import os, socket
path = open("path").read()
print(os.path.isdir(os.path.dirname(path)) and os.listdir(os.path.dirname(path)))
end = socket.socket(socket.AF_UNIX)
end.connect(path)
end.sendall(b'GET /api/v1/login HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')
print(end.recv(65536))
"""


@pytest.mark.skipif(LAYER.name != "bwrap", reason=f"no bubblewrap here: {LAYER.said}")
async def test_a_command_does_not_get_to_the_owners_socket(sylph: Sylph, model: Model) -> None:
    """Else the agent could answer its own questions."""
    (sylph.workspace / "knock.py").write_text(KNOCK)
    own = sylph.home / "sylph" / "data" / "sylph.sock"
    (sylph.workspace / "path").write_text(str(own))
    server = await model([call("shell", command=f"{sys.executable} knock.py"), say("Done.")])
    async with serving(sylph) as served:
        assert own.is_socket()
        session = await served.session(model="openai/scripted", mode="trust")
        await served.say(session["id"], "knock")
        seen = await served.until(session["id"])
    (finished,) = (event.data["data"] for event in seen if event.type == "tool.finished")
    assert "machine" not in finished["output"]
    assert "Error" in finished["output"], finished
    assert "keys.db" not in finished["output"]
    assert len(server.requests) == 2
