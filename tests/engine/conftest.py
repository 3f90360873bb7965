"""A home for each test, whose logs are looked through when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.checks import check_home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    check_home(tmp_path)
