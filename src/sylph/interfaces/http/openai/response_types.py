"""What `/v1/responses` answers with: the response, and the events it is streamed in."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from sylph.core.messages import Usage
from sylph.interfaces.http.openai.chat import AnswerInputDetails, AnswerOutputDetails, finish_reason_of, reply_error
from sylph.interfaces.http.openai.conversation import BACKGROUND
from sylph.interfaces.http.openai.errors import failure_answer
from sylph.interfaces.http.openai.start import RESPONSE_PREFIX
from sylph.interfaces.http.openai.turn_stream import TurnStream

ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]
REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


class OutputPart(Struct, frozen=True, kw_only=True):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[dict[str, Any]] = []


class OutputItem(Struct, frozen=True, kw_only=True):
    type: Literal["message"] = "message"
    id: str
    status: ResponseStatus
    role: Literal["assistant"] = "assistant"
    content: list[OutputPart] = []


class ResponseUsage(Struct, frozen=True, kw_only=True):
    """What all model calls of the turn have used together, those between tool calls too."""

    input_tokens: int
    input_tokens_details: AnswerInputDetails
    output_tokens: int
    output_tokens_details: AnswerOutputDetails
    total_tokens: int


class ResponseError(Struct, frozen=True, kw_only=True):
    code: str
    message: str


class IncompleteDetails(Struct, frozen=True, kw_only=True):
    reason: str


class ResponseAnswer(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: ResponseStatus
    model: str
    output: list[OutputItem]
    usage: ResponseUsage | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    metadata: dict[str, str] = {}
    store: bool = True
    background: bool = False
    parallel_tool_calls: bool = True
    temperature: float | None = None
    top_p: float | None = None
    tool_choice: Literal["auto"] = "auto"
    tools: list[dict[str, Any]] = []
    session: str = ""
    """The session of Sylph that it is a turn of."""


class ResponseEvent(Struct, frozen=True, kw_only=True):
    """One event of a streamed response. The `type` tells which of the others are there."""

    type: Literal[
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
        "response.incomplete",
        "response.failed",
    ]
    sequence_number: int
    response: ResponseAnswer | UnsetType = UNSET
    output_index: int | UnsetType = UNSET
    content_index: int | UnsetType = UNSET
    item_id: str | UnsetType = UNSET
    item: OutputItem | UnsetType = UNSET
    part: OutputPart | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    logprobs: list[dict[str, Any]] | UnsetType = UNSET


class DeletedResponse(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


def response_id(session: str, input: str, number: int, *, store: bool, background: bool) -> str:
    """It tells where the reply is in the log; that of one which is not to be found again leads nowhere."""
    mark = f"_{BACKGROUND}" if background else "" if store else "_unstored"
    return f"{RESPONSE_PREFIX}{session}_{input}_{number}{mark}"


def output_item(tale: TurnStream, number: int, status: ResponseStatus) -> OutputItem:
    text = tale.replies[number].text
    parts = [OutputPart(text=text)] if status != "in_progress" else []
    return OutputItem(id=f"msg_{tale.session}_{tale.input}_{number}", status=status, content=parts)


def build_response(
    tale: TurnStream, number: int, *, store: bool = True, background: bool = False, model: str = "", **more: Any
) -> ResponseAnswer:
    """A reply as a response, as far as it has come."""
    reply = tale.replies[number]
    trouble = reply_error(tale, number) if tale.is_complete(number) else None
    status, incomplete = _response_status(tale, number)
    item: ResponseStatus = "completed" if status == "completed" else "incomplete"
    error = failure_answer(trouble)[1].error if trouble else None
    return ResponseAnswer(
        id=response_id(tale.session, tale.input, number, store=store, background=background),
        created_at=tale.created // 1000,
        status=status,
        model=tale.model or model,
        output=[output_item(tale, number, item)] if reply.text and status != "in_progress" else [],
        usage=_response_usage(reply.usage) if status != "in_progress" else None,
        error=ResponseError(code=error.code or "", message=error.message) if error and status == "failed" else None,
        incomplete_details=IncompleteDetails(reason=incomplete) if incomplete else None,
        store=store,
        background=background,
        session=tale.session,
        **more,
    )


def _response_status(tale: TurnStream, number: int) -> tuple[ResponseStatus, str]:
    if not tale.is_complete(number):
        return "in_progress", ""
    if trouble := reply_error(tale, number):
        return ("cancelled" if trouble.kind == "cancelled" else "failed"), ""
    reason = REASONS.get(finish_reason_of(tale, tale.replies[number]), "")
    return ("incomplete" if reason else "completed"), reason


def _response_usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=usage.input,
        input_tokens_details=AnswerInputDetails(cached_tokens=usage.cached),
        output_tokens=usage.output,
        output_tokens_details=AnswerOutputDetails(reasoning_tokens=usage.reasoning),
        total_tokens=usage.input + usage.output,
    )
