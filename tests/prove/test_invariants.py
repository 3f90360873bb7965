"""A proof that cannot fail proves nothing: each thing that must not be is made so, and must be seen."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog
from sylph.features.prove.crash.invariants import CrashEvidence, check_invariants
from sylph.features.prove.scenario.fake_service import FakeService
from sylph.features.prove.scenario.fuse import CrashFuse
from sylph.features.prove.scenario.player import play_scenario
from sylph.features.prove.scenario.scenarios import READS
from sylph.features.prove.scenario.scratch_folder import ScratchFolder, TrialSetting


@pytest.fixture
async def look(tmp_path: Path) -> AsyncGenerator[CrashEvidence]:
    place, sink = ScratchFolder(tmp_path), FakeService()
    setting = TrialSetting(scenario="reads", port=sink.port, path=os.environ["PATH"], kind="none")
    place.prepare(setting)
    await play_scenario(setting, place, CrashFuse())
    log = EventLog.open(place.store)
    yield CrashEvidence(READS, place, sink, log, may_be_unknown=False)
    log.close()
    sink.close()


async def add(look: CrashEvidence, *new: Fact) -> None:
    (session,) = look.log.session_ids()
    drafts = [PendingFact(fact, 0, "t1", "user", 0) for fact in new]
    await look.log.append(session, drafts, expected=look.log.head(session).seq).done


async def test_a_story_without_a_kill_is_in_order(look: CrashEvidence) -> None:
    assert check_invariants(look) == ([], 0)


WORLD: dict[str, Callable[[CrashEvidence], object]] = {
    "shell first took effect 2 times": lambda look: (look.place.work / "journal").write_text("first\nfirst\n"),
    "shell first took effect 0 times": lambda look: (look.place.work / "journal").unlink(),
    "a.txt holds 'b\\n' and not 'a\\n'": lambda look: (look.place.work / "a.txt").write_text("b\n"),
    "left behind: .sylph-1.tmp": lambda look: (look.place.work / ".sylph-1.tmp").touch(),
    "acknowledged and lost: message k1": lambda look: look.place.lost.write_text("message k1\n"),
}


@pytest.mark.parametrize("problem", WORLD)
async def test_what_is_wrong_in_the_world_is_seen(look: CrashEvidence, problem: str) -> None:
    WORLD[problem](look)
    assert check_invariants(look)[0] == [problem]


FACTS: dict[str, Fact] = {
    "turn t1 has 2 ends": facts.TurnEnded(outcome="finished"),
    "the session is processing": facts.StateChanged(to="processing", was="idle", event="input"),
    "message k1 is there 2 times": facts.InputReceived(id="i2", text="again", key="k1"),
    "1 messages were said and 2 reached a turn": facts.InputDelivered(id="i1"),
    "call t1_c1 has 2 results": facts.ToolFinished(call="t1_c1", ok=True, output=""),
    "ended with 1 and the log says 0": facts.ToolFinished(call="t1_c2", ok=True, output="said first", exit=0),
    "is unknown, though it can be known": facts.ToolFinished(
        call="t1_c1", ok=False, output="", trouble=ErrorReport("unknown", "who knows")
    ),
    "7 calls were wanted and 8 made": facts.ToolCalled(call="t1_c99", name="read", arguments="{}"),
}


@pytest.mark.parametrize("problem", FACTS)
async def test_what_is_wrong_in_the_log_is_seen(look: CrashEvidence, problem: str) -> None:
    await add(look, FACTS[problem])
    session = look.log.session_ids()[0]
    found = [each.replace(f"{session}.", "") for each in check_invariants(look)[0]]
    assert any(problem in each for each in found), found


async def test_a_question_asked_again_after_its_answer_is_seen(look: CrashEvidence) -> None:
    asked = [facts.Asked(id=id, kind="question", question="Why?", call="t1_c1") for id in ("q1", "q2")]
    await add(look, asked[0], facts.Answered(id="q1", answer="so"), asked[1], facts.Answered(id="q2", answer="so"))
    assert "asked again after the answer: Why?" in check_invariants(look)[0]


async def test_a_process_that_is_left_is_seen(look: CrashEvidence) -> None:
    left = await asyncio.create_subprocess_exec("sleep", "20", env={"SYLPH_PROVE": str(look.place.root)})
    problems, _ = check_invariants(look)
    left.kill()
    await left.wait()
    assert problems == [f"still runs: {left.pid} sleep 20 "]


async def test_a_changed_record_is_seen(look: CrashEvidence) -> None:
    await look.log.execute_change(lambda db: db.execute("update event set data = '{}' where seq = 3"))
    assert any(each.startswith("chain:") for each in check_invariants(look)[0])
