"""Wherever a log ends, it is taken up from there: any prefix of any log recovers."""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.engine.checks import check_log

from sylph.core.provider import ModelReply
from sylph.engine.folds.fold import load_state
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.log.hash_chain import LogRecord
from sylph.engine.log.store import EventLog
from sylph.engine.log.verify import verify_session
from sylph.features.prove.scenario.fuse import CrashFuse
from sylph.features.prove.scenario.player import ScenarioPlayer, build_runtime
from sylph.features.prove.scenario.scenarios import (
    SCENARIOS,
    ProofScenario,
    SayStep,
    SideMessage,
    WantedCall,
    edit_call,
    note_command,
    read_call,
    write_call,
)
from sylph.features.prove.scenario.scratch_folder import ScratchFolder, TrialSetting
from sylph.testing import call_tools, say

SETTING = TrialSetting(scenario="", port=0, path=os.environ["PATH"], kind="none")
ASK: WantedCall = ("ask_user", {"questions": [{"question": "Which?"}]})

wanted = some.sampled_from(
    [
        write_call("a.txt", "one\n"),
        edit_call("a.txt", "one", "two"),
        read_call("a.txt"),
        note_command("word", 3),
        ASK,
        ("no_such_tool", {}),
    ]
)
rounds = some.lists(some.lists(wanted, min_size=1, max_size=3), max_size=3)


def scripted(turns: list[list[list[WantedCall]]], mode: str, *, steered: bool) -> ProofScenario:
    lines: list[ModelReply] = []
    for turn in turns:
        lines += [*(call_tools(*wanted) for wanted in turn), say("Done.")]
    asides = (SideMessage(key="aside", delivery="steer"),) if steered else ()
    steps = tuple(SayStep(key=f"k{number}", asides=asides if not number else ()) for number in range(len(turns)))
    return ProofScenario(name="any", lines=tuple(lines), steps=steps, mode="ask" if mode == "ask" else "trust")


async def played(scenario: ProofScenario, place: ScratchFolder) -> tuple[list[LogRecord], list[tuple[str, str, bytes]]]:
    """All that its first session has in the store at the end."""
    place.work.mkdir(parents=True)
    async with build_runtime(scenario, SETTING, place, CrashFuse()) as engine:
        await ScenarioPlayer(engine, scenario, place).perform_steps()
        log = engine.log
        (session, *_) = log.session_ids()
        return log.read_records(session, limit=100_000), log.query("select session, digest, bytes from blob", ())


async def recovered(
    scenario: ProofScenario, place: ScratchFolder, records: list[LogRecord], blobs: list[tuple[str, str, bytes]]
) -> None:
    """A process that finds a log which ends there goes on, and then takes one message more."""
    place.root.mkdir()
    session = records[0].session
    async with build_runtime(scenario, SETTING, place, CrashFuse()) as engine:
        await engine.log.install_records(records, blobs)
        actor = ScenarioPlayer(engine, scenario, place)
        await actor.recover_sessions()
        await actor.send_message(session, SayStep(key="after"))
        assert await engine.list_interrupted() == []
    check(place.store, session)


def check(store: Path, session: str) -> None:
    log = EventLog.open(store)
    summary = load_state(log, session, SESSION_FOLD)[0]
    events = log.read_events(session, limit=100_000)
    problems = verify_session(log, session).problems
    log.close()
    check_log(events)
    assert (summary.state, summary.open_turn, summary.queue, summary.open_calls, problems) == ("idle", "", {}, {}, ())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=some.lists(rounds, min_size=1, max_size=2),
    mode=some.sampled_from(["trust", "ask"]),
    steered=some.booleans(),
    cuts=some.lists(some.floats(0, 1), min_size=3, max_size=3),
)
def test_any_prefix_of_any_log_recovers(
    turns: list[list[list[WantedCall]]], mode: str, steered: bool, cuts: list[float]
) -> None:
    scenario = scripted(turns, mode, steered=steered)
    with TemporaryDirectory() as root:
        records, blobs = asyncio.run(played(scenario, ScratchFolder(Path(root, "played"))))
        for number, cut in enumerate(cuts):
            prefix = records[: 1 + int(cut * (len(records) - 1))]
            asyncio.run(recovered(scenario, ScratchFolder(Path(root, f"cut{number}")), prefix, blobs))


# What was erased needs the fact that vouches for it; the other one needs a world outside.
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ("outside", "erase")])
def test_a_scenario_goes_on_wherever_its_log_was_cut(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    records, blobs = asyncio.run(played(scenario, ScratchFolder(tmp_path / "played")))
    for cut in range(1, len(records) + 1, 3):
        asyncio.run(recovered(scenario, ScratchFolder(tmp_path / f"cut{cut}"), records[:cut], blobs))
