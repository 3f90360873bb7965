"""A desk for each test, in a workspace with a neighbour that is none of its business."""

from pathlib import Path

import pytest
from tests.tools.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return Desk(workspace)
