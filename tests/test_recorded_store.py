"""A store that version 0.1 wrote, with every kind of fact and a turn that was killed, opens in every later version."""

import tarfile
from pathlib import Path

import pytest
from tests.model_server import ModelServer, say

from sylph.app import App, build_app
from sylph.config import load_config
from sylph.core.commands import Continue
from sylph.core.facts import FACTS
from sylph.core.facts.turn import TurnEnded
from sylph.providers.replay_providers import create_replay_providers
from sylph.replay.player import load_recording, replay_session

STORE = Path(__file__).parent / "recordings" / "store-1.tar.xz"
# Brought in from older versions, whose tools had other words.
IMPORTED = {"change things", "tell me a story"}
# Where something was erased, a replay has nothing to compare with; the other is still open.
UNREPLAYED = {"erased", "left_open"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(STORE) as packed:
        packed.extractall(tmp_path, filter="data")
    # Where the recorded sessions worked.
    Path("/tmp/sylph-recording").mkdir(exist_ok=True)
    return tmp_path


def opened(home: Path) -> App:
    return build_app(load_config({"SYLPH_HOME": str(home), "HOME": str(home)}))


async def test_it_holds_every_kind_of_fact_and_every_chain_holds(home: Path) -> None:
    async with opened(home) as app:
        results = await app.runtime.verify_sessions()
        sessions = await app.runtime.list_sessions()
        kinds = {event.type for each in sessions for event in await app.runtime.read_events(each.id)}
        assert not await app.runtime.check_store()
    assert [each.problems for each in results] == [()] * len(results)
    assert (len(sessions), sum(each.events for each in results)) == (20, 1161)
    # Facts that later versions added are not in it.
    assert len(kinds & {fact.wire for fact in FACTS}) == 47


async def test_its_sessions_are_replayed_byte_for_byte(home: Path) -> None:
    async with opened(home) as app:
        for each in await app.runtime.list_sessions():
            if each.title in UNREPLAYED:
                continue
            recording = load_recording(app.runtime.log, each.id)
            done = await replay_session(
                recording, app.runtime.parts, create_replay_providers, any_head=each.title in IMPORTED
            )
            assert (each.title, done.divergence) == (each.title, None)
            assert done.matched == len(recording.records)


async def test_the_turn_that_was_killed_goes_on_with_the_true_result(home: Path) -> None:
    async with ModelServer([say("It ended with 4.")]) as server:
        config = home / "config.toml"
        old = next(line for line in config.read_text().splitlines() if line.startswith("base_url"))
        config.write_text(config.read_text().replace(old, f'base_url = "{server.url}"'))
        async with opened(home) as app:
            session = next(each.id for each in await app.runtime.list_sessions() if each.title == "left_open")
            await app.runtime.send(session, Continue())
            await app.runtime.wait_until_idle(session)
            ends = [event.body for event in await app.runtime.read_events(session)]
    assert [body.outcome for body in ends if isinstance(body, TurnEnded)] == ["finished"]
    (asked,) = server.requests
    assert "begun\ndone\n" in str(asked.json["messages"]) or "begun\\ndone" in str(asked.json["messages"])
