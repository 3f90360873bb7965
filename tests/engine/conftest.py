"""A home for each test, whose logs are looked through and replayed when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.checks import check_home
from tests.engine.replays import replay_home

from sylph.core.clock import Clock
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.runtime import Runtime, RuntimeParts


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    parts: list[RuntimeParts] = []
    init = Runtime.__init__

    def noticed(self: Runtime, log: EventLog, given: RuntimeParts, clock: Clock | None = None) -> None:
        parts.append(given)
        init(self, log, given, clock)

    monkeypatch.setattr(Runtime, "__init__", noticed)
    yield tmp_path
    monkeypatch.undo()
    check_home(tmp_path)
    if not request.node.get_closest_marker("unreplayed"):
        replay_home(tmp_path, parts)
