"""Asking the person, when the work cannot go on without them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult, UserQuestion


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    question: Annotated[str, Meta(min_length=1)]
    choices: Annotated[tuple[str, ...], Meta(max_length=10, description="Answers to choose from.")] = ()
    free_text: Annotated[bool, Meta(description="Whether an answer of their own is welcome.")] = True


class AskArgs(ToolArgs, frozen=True, kw_only=True):
    questions: Annotated[tuple[Item, ...], Meta(min_length=1, max_length=4)]


async def ask_user(args: AskArgs, context: ToolContext) -> ToolResult:
    for item in args.questions:
        _check_question(item)
    asked = [UserQuestion(text=item.question, choices=item.choices, free=item.free_text) for item in args.questions]
    answers = await context.ask(asked)
    pairs = zip(args.questions, answers, strict=True)
    return ToolResult(text="\n".join(f"{item.question}\n→ {answer}" for item, answer in pairs))


def _check_question(item: Item) -> None:
    if not item.free_text and len(item.choices) < 2:
        raise ToolError(
            f"Nothing to choose from: {item.question}",
            kind="bad_question",
            next=["Give two choices or more, or allow free_text."],
        )
    if len(set(item.choices)) < len(item.choices):
        raise ToolError(f"A choice comes twice: {item.question}", kind="bad_question")


ASK = Tool(
    name="ask_user",
    description="Ask the user, when only they can decide. Ask all that is open at once.",
    args=AskArgs,
    run=ask_user,
    effect="read",
    recourse="pure",
    seconds=None,
)
