"""Sessions that were recorded once come out of their logs again, with every later version."""

from pathlib import Path

import pytest

from sylph.app import build_app
from sylph.config import load_config
from sylph.core.facts import FACTS
from sylph.core.facts.model import ModelFailed
from sylph.core.facts.turn import TurnEnded
from sylph.engine.log.hash_chain import event_from_record
from sylph.providers.replay_providers import create_replay_providers
from sylph.replay.player import RecordedSession, parse_recording, replay_session

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.ndjson"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
async def test_a_recording_comes_out_as_it_was(path: Path, tmp_path: Path) -> None:
    recording = _recorded(path)
    async with build_app(load_config({"SYLPH_HOME": str(tmp_path)})) as app:
        # Tools get other words now and then; what is said and done must stay the same.
        done = await replay_session(recording, app.runtime.parts, create_replay_providers, any_head=True)
    assert done.divergence is None
    assert done.matched == len(recording.records)


def test_they_hold_nearly_everything_that_can_happen() -> None:
    events = [event_from_record(record) for path in RECORDINGS for record in _recorded(path).records]
    missing = {fact.wire for fact in FACTS} - {event.type for event in events}
    assert missing == {"session.erased", "compaction.failed"}
    failed = {event.body.trouble.kind for event in events if isinstance(event.body, ModelFailed)}
    assert failed >= {"rate_limited", "server_error", "cut", "bad_request", "overflow", "cancelled"}
    ends = {event.body.outcome for event in events if isinstance(event.body, TurnEnded)}
    assert ends == {"finished", "failed", "cancelled", "interrupted", "budget"}


def _recorded(path: Path) -> RecordedSession:
    return parse_recording(path.read_bytes().splitlines())


def test_there_are_recordings_and_they_tell_nothing_of_a_machine() -> None:
    assert len(RECORDINGS) >= 9
    for path in RECORDINGS:
        assert b"/home/" not in path.read_bytes()
        assert b"/root" not in path.read_bytes()
