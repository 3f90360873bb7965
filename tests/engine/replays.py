"""Every session that a test of the engine leaves behind is run again from its log, and must come out as it was."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sylph.core.provider import Provider
from sylph.engine.log.hash_chain import is_erased
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.runtime import RuntimeParts
from sylph.replay.player import RecordedSession, ReplayResult, load_recording, replay_session
from sylph.testing import ScriptedProvider


def replay_home(home: Path, parts: Sequence[RuntimeParts]) -> None:
    path = home / "data" / "sylph.db"
    if not path.exists() or not parts:
        return
    log = EventLog.open(path)
    recordings = [load_recording(log, session) for session in log.session_ids()]
    # What was erased cannot be said again.
    recordings = [each for each in recordings if not any(is_erased(record) for record in each.records)]
    log.close()
    for recording in recordings:
        asyncio.run(_replay(recording, parts))


async def _replay(recording: RecordedSession, parts: Sequence[RuntimeParts]) -> None:
    """Tests open a home with other parts than before; one of them must do."""
    found: list[ReplayResult] = []
    for each in reversed(parts):
        found.append(await replay_session(recording, each, lambda name, each=each: dialects(name, each)))
        if not found[-1].divergence:
            return
    best = max(found, key=lambda one: one.matched)
    assert not best.divergence, best.divergence


def dialects(name: str, parts: RuntimeParts) -> Sequence[Provider]:
    return (parts.gateway.providers.get(name, ScriptedProvider([])),)
