"""A home for each test, whose logs are looked through when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.engine.checks import check_home

settings.register_profile(
    "short", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("short")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    check_home(tmp_path)
