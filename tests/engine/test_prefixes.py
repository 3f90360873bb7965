"""Wherever a log ends, it is taken up from there: any prefix of any log recovers."""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.engine.checks import check_log

from sylph.core.provider import Reply
from sylph.engine.fold import load
from sylph.engine.log import Log
from sylph.engine.seal import Record
from sylph.engine.summary import SUMMARY
from sylph.engine.verify import verify
from sylph.prove.actor import Actor, build
from sylph.prove.fuse import Fuse
from sylph.prove.place import Place, Setting
from sylph.prove.scenarios import SCENARIOS, Aside, Say, Scenario, Wanted, edit, noted, read, write
from sylph.testing import calls, say

SETTING = Setting(scenario="", port=0, path=os.environ["PATH"], kind="none")
ASK: Wanted = ("ask_user", {"questions": [{"question": "Which?"}]})

wanted = some.sampled_from(
    [write("a.txt", "one\n"), edit("a.txt", "one", "two"), read("a.txt"), noted("word", 3), ASK, ("no_such_tool", {})]
)
rounds = some.lists(some.lists(wanted, min_size=1, max_size=3), max_size=3)


def scripted(turns: list[list[list[Wanted]]], mode: str, *, steered: bool) -> Scenario:
    lines: list[Reply] = []
    for turn in turns:
        lines += [*(calls(*wanted) for wanted in turn), say("Done.")]
    asides = (Aside(key="aside", delivery="steer"),) if steered else ()
    steps = tuple(Say(key=f"k{number}", asides=asides if not number else ()) for number in range(len(turns)))
    return Scenario(name="any", lines=tuple(lines), steps=steps, mode="ask" if mode == "ask" else "trust")


async def played(scenario: Scenario, place: Place) -> tuple[list[Record], list[tuple[str, str, bytes]]]:
    """All that its first session has in the store at the end."""
    place.work.mkdir(parents=True)
    async with build(scenario, SETTING, place, Fuse()) as engine:
        await Actor(engine, scenario, place).perform()
        log = engine.log
        (session, *_) = log.sessions()
        return log.records(session, limit=100_000), log.query("select session, digest, bytes from blob", ())


async def recovered(
    scenario: Scenario, place: Place, records: list[Record], blobs: list[tuple[str, str, bytes]]
) -> None:
    """A process that finds a log which ends there goes on, and then takes one message more."""
    place.root.mkdir()
    session = records[0].session
    async with build(scenario, SETTING, place, Fuse()) as engine:
        await engine.log.install(records, blobs)
        actor = Actor(engine, scenario, place)
        await actor.recover()
        await actor.say(session, Say(key="after"))
        assert await engine.interrupted() == []
    check(place.store, session)


def check(store: Path, session: str) -> None:
    log = Log.open(store)
    summary = load(log, session, SUMMARY)[0]
    events = log.read(session, limit=100_000)
    problems = verify(log, session).problems
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
    turns: list[list[list[Wanted]]], mode: str, steered: bool, cuts: list[float]
) -> None:
    scenario = scripted(turns, mode, steered=steered)
    with TemporaryDirectory() as root:
        records, blobs = asyncio.run(played(scenario, Place(Path(root, "played"))))
        for number, cut in enumerate(cuts):
            prefix = records[: 1 + int(cut * (len(records) - 1))]
            asyncio.run(recovered(scenario, Place(Path(root, f"cut{number}")), prefix, blobs))


# What was erased needs the fact that vouches for it; the other one needs a world outside.
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ("outside", "erase")])
def test_a_scenario_goes_on_wherever_its_log_was_cut(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    records, blobs = asyncio.run(played(scenario, Place(tmp_path / "played")))
    for cut in range(1, len(records) + 1, 3):
        asyncio.run(recovered(scenario, Place(tmp_path / f"cut{cut}"), records[:cut], blobs))
