"""The agent's checklist, kept in the log where everybody can see it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.facts.turn import PlanStep, PlanUpdated, StepStatus
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult

MOST = 50


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1)]
    status: StepStatus = "pending"


class PlanArgs(ToolArgs, frozen=True, kw_only=True):
    steps: Annotated[
        tuple[Item, ...],
        Meta(max_length=MOST, description="The whole checklist, every time; at most one step is doing."),
    ]


async def update_plan(args: PlanArgs, context: ToolContext) -> ToolResult:
    doing = [item.text for item in args.steps if item.status == "doing"]
    if len(doing) > 1:
        raise ToolError(f"{len(doing)} steps are doing; one at a time.", kind="bad_plan", next=["Mark one as doing."])
    await context.emit(PlanUpdated(steps=tuple(PlanStep(item.text, item.status) for item in args.steps)))
    return ToolResult(text=_render_plan(args.steps, doing))


def _render_plan(items: tuple[Item, ...], doing: list[str]) -> str:
    if not items:
        return "The plan is empty."
    wanted = [item for item in items if item.status != "dropped"]
    done = sum(item.status == "done" for item in wanted)
    now = f"; now: {doing[0]}" if doing else ""
    return f"Plan: {done} of {len(wanted)} done{now}."


PLAN = Tool(
    name="plan",
    description="Keep a checklist for work of several steps; send it whole whenever a step's status changes.",
    args=PlanArgs,
    run=update_plan,
    effect="read",
    recourse="pure",
)
