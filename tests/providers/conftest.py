"""What every provider test needs: a client that is closed in the end."""

from collections.abc import AsyncIterator

import pytest

from sylph.net.http import Client


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.close()
