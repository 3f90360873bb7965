"""What every test of the net needs: a client that is closed in the end."""

from collections.abc import AsyncIterator

import pytest

from sylph.net.http_client import HttpClient


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()
