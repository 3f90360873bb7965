"""Every session that a test of the engine leaves behind is run again from its log, and must come out as it was."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sylph.core.provider import Provider
from sylph.engine.log import Log
from sylph.engine.replay import Recording, Replayed, from_log, replay
from sylph.engine.runtime import Parts
from sylph.engine.seal import erased
from sylph.testing import ScriptedProvider


def replay_home(home: Path, parts: Sequence[Parts]) -> None:
    path = home / "data" / "sylph.db"
    if not path.exists() or not parts:
        return
    log = Log.open(path)
    recordings = [from_log(log, session) for session in log.sessions()]
    # What was erased cannot be said again.
    recordings = [each for each in recordings if not any(erased(record) for record in each.records)]
    log.close()
    for recording in recordings:
        asyncio.run(_replay(recording, parts))


async def _replay(recording: Recording, parts: Sequence[Parts]) -> None:
    """Tests open a home with other parts than before; one of them must do."""
    found: list[Replayed] = []
    for each in reversed(parts):
        found.append(await replay(recording, each, lambda name, each=each: dialects(name, each)))
        if not found[-1].divergence:
            return
    best = max(found, key=lambda one: one.matched)
    assert not best.divergence, best.divergence


def dialects(name: str, parts: Parts) -> Sequence[Provider]:
    return (parts.gateway.providers.get(name, ScriptedProvider([])),)
