"""A home, a workspace and a scripted model for each test."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.flows.program import Model, Sylph
from tests.model_server import ModelServer, Script


@pytest.fixture
def sylph(tmp_path: Path) -> Sylph:
    """Sylph with nothing configured, which looks for no model server on this machine."""
    workspace, home = tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text("probe = false\n")
    return Sylph(home, workspace)


@pytest.fixture
async def model(sylph: Sylph) -> AsyncGenerator[Model, None]:
    """Gives Sylph a model that follows a script."""
    async with AsyncExitStack() as stack:

        async def follow(script: Script) -> ModelServer:
            server = await stack.enter_async_context(ModelServer(script))
            sylph.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="a-key-for-tests")
            return server

        yield follow
