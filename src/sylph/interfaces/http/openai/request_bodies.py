"""What clients of both dialects ask for. They send more than is listed here; that is let pass."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.core.messages import AnswerFormat
from sylph.interfaces.http.openai.message_parts import (
    ConversationMessage,
    MessageContent,
    parse_message,
    unsupported_error,
)

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
EffortLevel = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
MAX_MESSAGES = 2000
RULE_ROLES = ("system", "developer")
JSON_ONLY = "Answer with one JSON object and nothing else: no words around it, no code fence."
TOOLS_REFUSAL = "Sylph works with tools of its own, under its own rules; a client's tools are not called."


class ChatMessage(Struct, frozen=True, kw_only=True):
    role: Role
    content: MessageContent = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class JsonSchema(Struct, frozen=True, kw_only=True):
    schema: dict[str, Any]
    name: str = ""
    strict: bool | None = None


class TextFormat(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    pass


class ObjectFormat(Struct, frozen=True, kw_only=True, tag_field="type", tag="json_object"):
    pass


class ChatSchema(Struct, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    json_schema: JsonSchema


class FlatSchema(Struct, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    schema: dict[str, Any]
    name: str = ""
    strict: bool | None = None


class StreamOptions(Struct, frozen=True, kw_only=True):
    include_usage: bool = False


Model = Annotated[
    str,
    Meta(max_length=300, description="`sylph`, `sylph/MODE` for a stricter mode, `provider/model`, or `@role`."),
]
Metadata = Annotated[
    dict[str, Any],
    Meta(description="`session` goes on with a session of Sylph, `workspace` is the folder of a new one."),
]
Tokens = Annotated[int, Meta(ge=1, description="How long each answer of the model may be.")]


class ChatBody(Struct, frozen=True, kw_only=True):
    """A conversation whose last message is to be answered."""

    model: Model
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    response_format: TextFormat | ObjectFormat | ChatSchema | None = None
    reasoning_effort: EffortLevel | None = None
    n: Annotated[int, Meta(ge=1, description="Only one answer can be had.")] | None = None
    tools: Annotated[list[dict[str, Any]], Meta(description="Must be empty: see the handbook.")] | None = None
    functions: Annotated[list[dict[str, Any]], Meta(description="Must be empty: see the handbook.")] | None = None
    metadata: Metadata | None = None
    store: Annotated[bool, Meta(description="Whether the turn goes on where the client goes away.")] | None = None


class ResponseInputItem(Struct, frozen=True, kw_only=True):
    """One thing of the conversation so far; only messages are taken."""

    type: str = "message"
    role: Role | None = None
    content: MessageContent = None


class TextConfig(Struct, frozen=True, kw_only=True):
    format: TextFormat | ObjectFormat | FlatSchema | None = None


class ReasoningOptions(Struct, frozen=True, kw_only=True):
    effort: EffortLevel | None = None


class ResponseBody(Struct, frozen=True, kw_only=True):
    """What is to be answered, in a conversation that began with another response or begins here."""

    model: Model
    input: str | Annotated[list[ResponseInputItem], Meta(min_length=1, max_length=MAX_MESSAGES)]
    instructions: str | None = None
    previous_response_id: Annotated[str, Meta(max_length=200)] | None = None
    stream: bool | None = False
    store: Annotated[bool, Meta(description="Whether it can be asked for later.")] | None = True
    max_output_tokens: Tokens | None = None
    text: TextConfig | None = None
    reasoning: ReasoningOptions | None = None
    tools: Annotated[list[dict[str, Any]], Meta(description="Must be empty: see the handbook.")] | None = None
    background: Annotated[bool, Meta(description="Answer at once, and let it be asked for later.")] | None = False
    metadata: Metadata | None = None
    conversation: Any = None


class CompletionRequest(Struct, frozen=True, kw_only=True):
    """A request of either dialect, understood."""

    model: str
    messages: tuple[ConversationMessage, ...]
    """The conversation, without its rules."""
    rules: str = ""
    form: AnswerFormat | None = None
    metadata: dict[str, str] = {}
    store: bool = False
    previous: str = ""


def parse_chat_body(body: ChatBody) -> CompletionRequest:
    if body.tools or body.functions:
        raise unsupported_error(TOOLS_REFUSAL, "tools" if body.tools else "functions", "leave them out")
    if (body.n or 1) > 1:
        raise unsupported_error("Only one answer can be had at a time.", "n", "ask more than once")
    told = [_parse_chat_message(each, number) for number, each in enumerate(body.messages)]
    form, rule = _answer_format(
        body.response_format, body.max_completion_tokens or body.max_tokens, body.reasoning_effort, "response_format"
    )
    return _build_request(body.model, told, [rule], form, body.metadata, store=bool(body.store))


def parse_response_body(body: ResponseBody) -> CompletionRequest:
    if body.tools:
        raise unsupported_error(TOOLS_REFUSAL, "tools", "leave them out")
    if body.conversation:
        raise unsupported_error(
            "Conversations are kept by their responses.", "conversation", "use previous_response_id"
        )
    items = [ResponseInputItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    told = [each for number, item in enumerate(items) if (each := _parse_input_item(item, number))]
    effort = body.reasoning.effort if body.reasoning else None
    form, rule = _answer_format(body.text.format if body.text else None, body.max_output_tokens, effort, "text.format")
    store = body.store is not False
    made = _build_request(body.model, told, [body.instructions or "", rule], form, body.metadata, store=store)
    return msgspec.structs.replace(made, previous=body.previous_response_id or "")


def _parse_chat_message(message: ChatMessage, number: int) -> ConversationMessage:
    told = parse_message(message.role, message.content, f"messages[{number}].content")
    if not message.tool_calls:
        return told
    # What another model called elsewhere is part of the story, as words.
    called = "\n".join(f"[called {msgspec.json.encode(call).decode()}]" for call in message.tool_calls)
    return msgspec.structs.replace(told, text="\n".join(filter(None, [told.text, called])))


def _parse_input_item(item: ResponseInputItem, number: int) -> ConversationMessage | None:
    where = f"input[{number}]"
    if item.type == "reasoning":
        return None
    if item.type != "message" or item.role is None:
        raise unsupported_error(
            f"Items of type {item.type!r} are not taken.", where, "give messages with a role and content"
        )
    return parse_message(item.role, item.content, f"{where}.content")


def _answer_format(
    format: TextFormat | ObjectFormat | ChatSchema | FlatSchema | None,
    tokens: int | None,
    effort: EffortLevel | None,
    param: str,
) -> tuple[AnswerFormat | None, str]:
    """How the answer is wanted, and what has to be said in words."""
    schema: dict[str, Any] | None = None
    match format:
        case ChatSchema(json_schema=JsonSchema(schema=schema)) | FlatSchema(schema=schema):
            if not schema:
                raise unsupported_error("The schema is empty.", param)
        case _:
            pass
    close = {"minimal": "low", "xhigh": "high"}
    form = AnswerFormat(
        schema=msgspec.json.encode(schema).decode() if schema else "",
        tokens=tokens,
        effort=close.get(effort or "", effort or ""),
    )
    return (form if form != AnswerFormat() else None), (JSON_ONLY if isinstance(format, ObjectFormat) else "")


def _build_request(
    model: str,
    told: list[ConversationMessage],
    rules: list[str],
    form: AnswerFormat | None,
    metadata: dict[str, Any] | None,
    *,
    store: bool,
) -> CompletionRequest:
    messages = tuple(each for each in told if each.role not in RULE_ROLES)
    if not messages or messages[-1].role != "user":
        raise unsupported_error("The last message is not the user's: there is nothing to answer.", "messages")
    if not any(each.text.strip() or each.files for each in unanswered_messages(messages)):
        raise unsupported_error("There is nothing in the last message.", "messages")
    said_rules = [*(each.text for each in told if each.role in RULE_ROLES), *rules]
    return CompletionRequest(
        model=model,
        messages=messages,
        rules="\n\n".join(text.strip() for text in said_rules if text.strip()),
        form=form,
        metadata={key: str(value) for key, value in (metadata or {}).items()},
        store=store,
    )


def unanswered_messages(messages: tuple[ConversationMessage, ...]) -> tuple[ConversationMessage, ...]:
    """What was said since the last answer."""
    start = next((at for at in range(len(messages), 0, -1) if messages[at - 1].role == "assistant"), 0)
    return messages[start:]
