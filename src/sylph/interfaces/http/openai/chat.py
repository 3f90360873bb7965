"""`/v1/chat/completions`: a conversation that the client tells whole each time."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Header, Request
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from sylph.core.errors import ErrorReport, SylphError
from sylph.core.messages import Usage
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import JSON, RouteGroup
from sylph.interfaces.http.openai.errors import failure_answer
from sylph.interfaces.http.openai.pending_reply import HEARTBEAT_COMMENT, PendingReply, make_pending_reply
from sylph.interfaces.http.openai.request_bodies import ChatBody, ChatMessage, parse_chat_body
from sylph.interfaces.http.openai.start import start_reply
from sylph.interfaces.http.openai.turn_stream import TurnReply, TurnStream
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("openai", prefix="/v1")
SSE = "text/event-stream"
FinishReason = Literal["stop", "length", "content_filter"]
FINISH_REASONS: dict[str, FinishReason] = {"length": "length", "filtered": "content_filter"}
SESSION_HEADER = "X-Sylph-Session"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
SessionHeader = Annotated[
    str, Header(max_length=64, description="Goes on with this session, whatever was said before.")
]
RetryCountHeader = Annotated[int, Header(ge=0, le=100, description="How often the client has tried before.")]


class ChatAnswerMessage(Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str | None = None
    refusal: str | None = None


class ChatChoice(Struct, frozen=True, kw_only=True):
    index: int = 0
    message: ChatAnswerMessage
    finish_reason: FinishReason
    logprobs: None = None


class AnswerInputDetails(Struct, frozen=True, kw_only=True):
    cached_tokens: int = 0


class AnswerOutputDetails(Struct, frozen=True, kw_only=True):
    reasoning_tokens: int = 0


class ChatUsage(Struct, frozen=True, kw_only=True):
    """What all model calls of the turn have used together, those between tool calls too."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: AnswerInputDetails
    completion_tokens_details: AnswerOutputDetails


class ChatAnswer(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage


class ChatDelta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: Literal["assistant", ""] = ""
    content: str | None = None
    reasoning_content: str | None = None


class ChunkChoice(Struct, frozen=True, kw_only=True):
    index: int = 0
    delta: ChatDelta
    finish_reason: FinishReason | None = None


class ChatChunk(Struct, frozen=True, kw_only=True):
    """One piece of a streamed answer; `data: [DONE]` comes last."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: ChatUsage | UnsetType | None = UNSET


EXAMPLE = ChatBody(model="sylph", messages=[ChatMessage(role="user", content="What is in this folder?")])
ANSWER = ChatAnswer(
    id="chatcmpl-h7k2m9qxwz4d_i1_0",
    created=1_762_000_000,
    model="openai/gpt-5",
    choices=[ChatChoice(message=ChatAnswerMessage(content="A README and a folder of tests."), finish_reason="stop")],
    usage=ChatUsage(
        prompt_tokens=1200,
        completion_tokens=40,
        total_tokens=1240,
        prompt_tokens_details=AnswerInputDetails(cached_tokens=1000),
        completion_tokens_details=AnswerOutputDetails(),
    ),
)


@routes.post(
    "/chat/completions",
    scope="chat",
    gives=ChatAnswer,
    attaches=True,
    streams=ChatChunk,
    errors=(402, 404, 409, 502, 503),
    example=EXAMPLE,
    answer=ANSWER,
)
async def create_chat_completion(
    server: ServerState,
    principal: Principal,
    request: Request,
    body: ChatBody,
    x_sylph_session: SessionHeader = "",
    x_stainless_retry_count: RetryCountHeader = 0,
) -> Response:
    """Answer the last message of a conversation.

    A conversation that goes on from an answer of Sylph's goes on in the same session; one that was changed goes on in
    a fork or in a new one. Sylph works with its own tools. Where it has to ask, the answer ends with the question, and
    the next message answers it.
    """
    wanted = parse_chat_body(body)
    if x_sylph_session:
        wanted = replace(wanted, metadata={**wanted.metadata, "session": x_sylph_session})
    begun = await start_reply(server, principal, wanted, again=x_stainless_retry_count > 0)
    told = make_pending_reply(server, request, begun, stays=wanted.store)
    headers = {**HEADERS, SESSION_HEADER: begun.session}
    if body.stream:
        counts = bool(body.stream_options and body.stream_options.include_usage)
        return StreamingResponse(_stream_chunks(told, body.model, counts=counts), headers=headers, media_type=SSE)
    tale = await told.wait_complete()
    if trouble := reply_error(tale, begun.number):
        status, error = failure_answer(trouble)
        return Response(msgspec.json.encode(error), status, headers, JSON)
    reply = tale.replies[begun.number]
    made = ChatAnswer(
        id=_completion_id(told),
        created=tale.created // 1000,
        model=tale.model or body.model,
        choices=[
            ChatChoice(message=ChatAnswerMessage(content=reply.text), finish_reason=finish_reason_of(tale, reply))
        ],
        usage=chat_usage(reply.usage),
    )
    return Response(msgspec.json.encode(made), 200, headers, JSON)


async def _stream_chunks(told: PendingReply, model: str, *, counts: bool) -> AsyncGenerator[bytes, None]:
    tale, number = told.turn, told.handle.number
    absent: UnsetType | None = None if counts else UNSET

    def chunk(delta: ChatDelta, finish: FinishReason | None = None) -> bytes:
        choice = ChunkChoice(delta=delta, finish_reason=finish)
        return frame_sse(_make_chunk(told, model, [choice], absent))

    yield chunk(ChatDelta(role="assistant", content=""))
    try:
        async for piece in told.stream_pieces():
            if piece is None:
                yield HEARTBEAT_COMMENT
            else:
                yield chunk(ChatDelta(content=piece.text or None, reasoning_content=piece.thought or None))
    except SylphError as error:
        yield frame_sse(failure_answer(error.trouble)[1])
        return
    if trouble := reply_error(tale, number):
        yield frame_sse(failure_answer(trouble)[1])
        return
    yield chunk(ChatDelta(), finish_reason_of(tale, tale.replies[number]))
    if counts:
        yield frame_sse(_make_chunk(told, model, [], chat_usage(tale.replies[number].usage)))
    yield b"data: [DONE]\n\n"


def _make_chunk(
    told: PendingReply, model: str, choices: list[ChunkChoice], usage: ChatUsage | UnsetType | None
) -> ChatChunk:
    tale = told.turn
    return ChatChunk(
        id=_completion_id(told), created=tale.created // 1000, model=tale.model or model, choices=choices, usage=usage
    )


def _completion_id(told: PendingReply) -> str:
    return f"chatcmpl-{told.handle.session}_{told.handle.input}_{told.handle.number}"


def frame_sse(value: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(value)


def chat_usage(usage: Usage) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=usage.input,
        completion_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        prompt_tokens_details=AnswerInputDetails(cached_tokens=usage.cached),
        completion_tokens_details=AnswerOutputDetails(reasoning_tokens=usage.reasoning),
    )


def reply_error(tale: TurnStream, number: int) -> ErrorReport | None:
    """Why there is no reply, where there is none: what was said before a budget was spent is one."""
    if tale.failure or number < len(tale.replies) - 1:
        return tale.failure
    ended = tale.ended
    if ended is None or ended.outcome == "finished" or ended.trouble is None:
        return None
    if ended.trouble.kind == "refusal" or (ended.outcome == "budget" and tale.replies[number].texts):
        return None
    return ended.trouble


def finish_reason_of(tale: TurnStream, reply: TurnReply) -> FinishReason:
    if reply.asked or tale.ended is None:
        return "stop"
    if tale.ended.trouble:
        return "content_filter" if tale.ended.trouble.kind == "refusal" else "length"
    return FINISH_REASONS.get(reply.finish, "stop")
