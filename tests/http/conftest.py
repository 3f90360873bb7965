"""A running server for each test, with a scripted model."""

from collections.abc import AsyncGenerator

import pytest
from tests.flows.conftest import model, sylph
from tests.flows.program import Model, Sylph
from tests.http.served import Served, serving
from tests.model_server import ModelServer, say

__all__ = ["model", "served", "sylph"]


@pytest.fixture
async def scripted(model: Model) -> ModelServer:
    """What the model says, unless a test wants something else."""
    return await model([say("Hello from the model.")] * 8)


@pytest.fixture
async def served(sylph: Sylph, scripted: ModelServer) -> AsyncGenerator[Served, None]:
    async with serving(sylph) as running:
        yield running
