"""A desk for each test, in a workspace with a neighbour that is none of its business."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.tools.desk import Desk

from sylph.engine.commands.runner_client import RunnerClient


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    desk = Desk(workspace, runner=RunnerClient(tmp_path / "runs"))
    yield desk
    desk.runner.close()
