"""Telling the person something while they are elsewhere, on the ways they have set up for it."""

from typing import Annotated

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.facts.delivery import DOOR_CHANNEL, Notification, Urgency
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult


class NotifyArgs(ToolArgs, frozen=True, kw_only=True):
    title: Annotated[str, Meta(min_length=1, max_length=200, description="What happened, in one line.")]
    text: Annotated[str, Meta(max_length=4000, description="What they need to know.")] = ""
    urgency: Annotated[Urgency, Meta(description="high if they should come at once.")] = "normal"


async def notify_user(args: NotifyArgs, context: ToolContext) -> ToolResult:
    if not args.title.strip():
        raise ToolError("The title is empty.", kind="invalid_arguments", next=["Say what happened in one line."])
    ways = await context.notify(Notification(title=args.title, text=args.text, urgency=args.urgency))
    sent = [way for way in ways if way != DOOR_CHANNEL]
    shown = "It is shown where this session is watched"
    return ToolResult(text=f"{shown}, and is being sent by {' and '.join(sent)}." if sent else f"{shown}.")


NOTIFY = Tool(
    name="notify",
    description="Notify the user, who may be away: a long task is done, or they should look. It waits for no answer.",
    args=NotifyArgs,
    run=notify_user,
    # It goes where the person set it up to go, and nowhere else; told twice under one key it is told once.
    effect="read",
    recourse="pure",
)
