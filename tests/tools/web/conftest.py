"""A desk as the other tools have it, and the web tools with loopback allowed."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.tools.desk import Desk

from sylph.core.tool import Tool
from sylph.engine.runs import Runner
from sylph.net.http import Client
from sylph.net.reach import Reach
from sylph.net.visit import Bounds
from sylph.tools.web import Chromium, Service, Web


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    (tmp_path / "work").mkdir()
    desk = Desk(tmp_path / "work", private=tmp_path / "private", runner=Runner(tmp_path / "runs"))
    yield desk
    desk.runner.close()


@pytest.fixture
async def fetch() -> AsyncGenerator[Tool]:
    client = Client()
    web = Web(
        reach=Reach(["127.0.0.1"]),
        client=client,
        bounds=Bounds(bytes=2_000_000, seconds=5.0),
        service=Service(),
        chromium=Chromium(),
    )
    yield next(tool for tool in web.tools if tool.name == "fetch")
    await web.close()
    await client.close()
