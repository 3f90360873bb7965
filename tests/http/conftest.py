"""A running server for each test, with a scripted model."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from tests.flows.conftest import model, sylph
from tests.flows.program import Model, Sylph
from tests.http.acting import Client, acting
from tests.http.served import Served, serving
from tests.model_server import ModelServer, say

__all__ = ["api", "model", "served", "sylph"]


@pytest.fixture
async def scripted(model: Model) -> ModelServer:
    """What the model says, unless a test wants something else."""
    return await model([say("Hello from the model.")] * 8)


@pytest.fixture
async def served(sylph: Sylph, scripted: ModelServer) -> AsyncGenerator[Served, None]:
    async with serving(sylph) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Client, None]:
    """One server for all tests of a module, with a model that does as it is told."""
    async with acting(tmp_path_factory.mktemp("acting")) as served:
        yield Client(served)
