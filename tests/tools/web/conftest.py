"""A desk as the other tools have it, and the web tools with loopback allowed."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.tools.desk import Desk

from sylph.core.tool import Tool
from sylph.engine.commands.runner_client import RunnerClient
from sylph.net.address_guard import AddressGuard
from sylph.net.http_client import HttpClient
from sylph.net.page_fetch import FetchLimits
from sylph.tools.web import ChromiumSettings, SearchService, WebTools


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    (tmp_path / "work").mkdir()
    desk = Desk(tmp_path / "work", private=tmp_path / "private", runner=RunnerClient(tmp_path / "runs"))
    yield desk
    desk.runner.close()


@pytest.fixture
async def fetch() -> AsyncGenerator[Tool]:
    client = HttpClient()
    web = WebTools(
        reach=AddressGuard(["127.0.0.1"]),
        client=client,
        bounds=FetchLimits(bytes=2_000_000, seconds=5.0),
        service=SearchService(),
        chromium=ChromiumSettings(),
    )
    yield next(tool for tool in web.tools if tool.name == "fetch")
    await web.close()
    await client.close()
