"""The way stays short: how far a message travels from the session to the model."""

import inspect
from collections.abc import AsyncGenerator
from pathlib import Path

from tests.engine.stage import TOOLS

import sylph
from sylph.core.provider import Chunk, ModelRequest
from sylph.testing import ScriptedProvider, begin_session, call_tool, play_turn, say, scripted_runtime

ROOT = str(Path(sylph.__file__).parent)


class Surveyor(ScriptedProvider):
    """Notes which frames of ours are on the stack when the model is called."""

    frames: tuple[str, ...] = ()

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        frame, found = inspect.currentframe(), list[str]()
        while frame := frame and frame.f_back:
            if frame.f_code.co_filename.startswith(ROOT):
                found.append(frame.f_code.co_qualname)
        self.frames = tuple(found)
        async for chunk in super().stream(request, body):
            yield chunk


async def test_the_model_is_six_frames_away(home: Path) -> None:
    model = Surveyor([call_tool("put", path="a.txt"), say("Done.")])
    async with scripted_runtime(home, model, tools=TOOLS) as engine:
        await play_turn(engine, await begin_session(engine, home), "write it")
    assert len(model.frames) <= 6, model.frames
