"""A home, a workspace and a scripted model for each test."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest
from tests.flows.program import Model, Sylph
from tests.model_server import ModelServer, Script

# A prompt may begin anew for these reasons, and for no other.
NAMED = {"", "first", "model", "compaction", "retry"}


@pytest.fixture
def sylph(tmp_path: Path) -> Generator[Sylph, None, None]:
    """Sylph with nothing configured, which looks for no model server on this machine.

    Whatever a test does with it: each request extends the bytes of the one before, or names the reason why not.
    """
    workspace, home = tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text("probe = false\n")
    yield Sylph(home, workspace)
    for session, missed in unexplained(home / "sylph" / "data" / "events.db"):
        pytest.fail(f"The prompt of {session} did not grow at its end: {missed} changed.")


def unexplained(store: Path) -> list[tuple[str, str]]:
    if not store.is_file():
        return []
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as base:
        try:
            rows = base.execute("select session, data from event where type = 'model.requested'").fetchall()
        except sqlite3.DatabaseError:
            # Some tests break it.
            return []
    told = [(session, json.loads(data)) for session, data in rows if data]
    return [(session, data["missed"]) for session, data in told if data.get("missed", "") not in NAMED]


@pytest.fixture
async def model(sylph: Sylph) -> AsyncGenerator[Model, None]:
    """Gives Sylph a model that follows a script."""
    async with AsyncExitStack() as stack:

        async def follow(script: Script) -> ModelServer:
            server = await stack.enter_async_context(ModelServer(script))
            sylph.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="a-key-for-tests")
            return server

        yield follow
