import msgspec
import pytest
from tests.tools.desk import Desk, refused

from sylph.core.errors import ToolError
from sylph.core.facts.turn import PlanStep, PlanUpdated
from sylph.engine.calls.judged_call import parse_arguments
from sylph.tools.plan import PLAN


async def test_the_plan_is_kept_whole_as_a_fact(desk: Desk) -> None:
    steps = [{"text": "look", "status": "done"}, {"text": "cut", "status": "doing"}, {"text": "sew"}]
    result = await desk.use("plan", steps=[*steps, {"text": "iron", "status": "dropped"}])
    assert result.text == "Plan: 1 of 3 done; now: cut."
    expected = (PlanStep("look", "done"), PlanStep("cut", "doing"), PlanStep("sew"), PlanStep("iron", "dropped"))
    assert desk.facts == [PlanUpdated(steps=expected)]


async def test_a_plan_may_be_emptied(desk: Desk) -> None:
    assert (await desk.use("plan", steps=[])).text == "The plan is empty."
    assert desk.facts == [PlanUpdated(steps=())]


async def test_only_one_step_is_done_at_a_time(desk: Desk) -> None:
    with refused("bad_plan"):
        await desk.use("plan", steps=[{"text": "a", "status": "doing"}, {"text": "b", "status": "doing"}])
    assert desk.facts == []


async def test_a_status_that_does_not_exist_is_not_accepted(desk: Desk) -> None:
    with pytest.raises(msgspec.ValidationError):
        await desk.use("plan", steps=[{"text": "a", "status": "maybe"}])


def test_a_wrong_status_is_told_with_those_there_are() -> None:
    with pytest.raises(ToolError, match="it may be 'doing', 'done', 'dropped', 'pending'"):
        parse_arguments(PLAN, '{"steps": [{"text": "a", "status": "maybe"}]}')
