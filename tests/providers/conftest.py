"""What every provider test needs: a client that is closed in the end."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sylph.app import build_app
from sylph.config import load_config
from sylph.core.provider import ToolSpec
from sylph.net.http_client import HttpClient


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


@pytest.fixture
def specs(tmp_path: Path) -> tuple[ToolSpec, ...]:
    """The tools of the whole program, as a model sees them."""
    app = build_app(load_config({"HOME": str(tmp_path)}))
    return app.runtime.executor.specs
