"""`/v1/chat/completions`: a conversation that the client tells whole each time."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Header, Request
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from sylph.core.errors import SylphError, Trouble
from sylph.core.messages import Usage
from sylph.interfaces.http.house import House
from sylph.interfaces.http.openai.begin import begin
from sylph.interfaces.http.openai.bodies import ChatBody, ChatMessage, from_chat
from sylph.interfaces.http.openai.errors import failed
from sylph.interfaces.http.openai.live import BEATS, Live, live
from sylph.interfaces.http.openai.tale import Reply, Tale
from sylph.interfaces.http.route import JSON, Routes
from sylph.interfaces.http.who import Who

routes = Routes("openai", prefix="/v1")
SSE = "text/event-stream"
Finish = Literal["stop", "length", "content_filter"]
FINISH: dict[str, Finish] = {"length": "length", "filtered": "content_filter"}
SESSION = "X-Sylph-Session"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
Session = Annotated[str, Header(max_length=64, description="Goes on with this session, whatever was said before.")]
Again = Annotated[int, Header(ge=0, le=100, description="How often the client has tried before.")]


class ChatMade(Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str | None = None
    refusal: str | None = None


class ChatChoice(Struct, frozen=True, kw_only=True):
    index: int = 0
    message: ChatMade
    finish_reason: Finish
    logprobs: None = None


class InputDetails(Struct, frozen=True, kw_only=True):
    cached_tokens: int = 0


class OutputDetails(Struct, frozen=True, kw_only=True):
    reasoning_tokens: int = 0


class ChatUsage(Struct, frozen=True, kw_only=True):
    """What all model calls of the turn have used together, those between tool calls too."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: InputDetails
    completion_tokens_details: OutputDetails


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
    finish_reason: Finish | None = None


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
    choices=[ChatChoice(message=ChatMade(content="A README and a folder of tests."), finish_reason="stop")],
    usage=ChatUsage(
        prompt_tokens=1200,
        completion_tokens=40,
        total_tokens=1240,
        prompt_tokens_details=InputDetails(cached_tokens=1000),
        completion_tokens_details=OutputDetails(),
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
async def chat_completions(
    house: House,
    who: Who,
    request: Request,
    body: ChatBody,
    x_sylph_session: Session = "",
    x_stainless_retry_count: Again = 0,
) -> Response:
    """Answer the last message of a conversation.

    A conversation that goes on from an answer of Sylph's goes on in the same session; one that was changed goes on in
    a fork or in a new one. Sylph works with its own tools. Where it has to ask, the answer ends with the question, and
    the next message answers it.
    """
    wanted = from_chat(body)
    if x_sylph_session:
        wanted = replace(wanted, metadata={**wanted.metadata, "session": x_sylph_session})
    begun = await begin(house, who, wanted, again=x_stainless_retry_count > 0)
    told = live(house, request, begun, stays=wanted.store)
    headers = {**HEADERS, SESSION: begun.session}
    if body.stream:
        counts = bool(body.stream_options and body.stream_options.include_usage)
        return StreamingResponse(_stream(told, body.model, counts=counts), headers=headers, media_type=SSE)
    tale = await told.whole()
    if trouble := troubled(tale, begun.number):
        status, error = failed(trouble)
        return Response(msgspec.json.encode(error), status, headers, JSON)
    reply = tale.replies[begun.number]
    made = ChatAnswer(
        id=_id(told),
        created=tale.created // 1000,
        model=tale.model or body.model,
        choices=[ChatChoice(message=ChatMade(content=reply.text), finish_reason=finish_of(tale, reply))],
        usage=usage_of(reply.usage),
    )
    return Response(msgspec.json.encode(made), 200, headers, JSON)


async def _stream(told: Live, model: str, *, counts: bool) -> AsyncGenerator[bytes, None]:
    tale, number = told.tale, told.begun.number
    absent: UnsetType | None = None if counts else UNSET

    def chunk(delta: ChatDelta, finish: Finish | None = None) -> bytes:
        choice = ChunkChoice(delta=delta, finish_reason=finish)
        return framed(_chunk(told, model, [choice], absent))

    yield chunk(ChatDelta(role="assistant", content=""))
    try:
        async for piece in told.pieces():
            if piece is None:
                yield BEATS
            else:
                yield chunk(ChatDelta(content=piece.text or None, reasoning_content=piece.thought or None))
    except SylphError as error:
        yield framed(failed(error.trouble)[1])
        return
    if trouble := troubled(tale, number):
        yield framed(failed(trouble)[1])
        return
    yield chunk(ChatDelta(), finish_of(tale, tale.replies[number]))
    if counts:
        yield framed(_chunk(told, model, [], usage_of(tale.replies[number].usage)))
    yield b"data: [DONE]\n\n"


def _chunk(told: Live, model: str, choices: list[ChunkChoice], usage: ChatUsage | UnsetType | None) -> ChatChunk:
    tale = told.tale
    return ChatChunk(
        id=_id(told), created=tale.created // 1000, model=tale.model or model, choices=choices, usage=usage
    )


def _id(told: Live) -> str:
    return f"chatcmpl-{told.begun.session}_{told.begun.input}_{told.begun.number}"


def framed(value: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(value)


def usage_of(usage: Usage) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=usage.input,
        completion_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        prompt_tokens_details=InputDetails(cached_tokens=usage.cached),
        completion_tokens_details=OutputDetails(reasoning_tokens=usage.reasoning),
    )


def troubled(tale: Tale, number: int) -> Trouble | None:
    """Why there is no reply, where there is none: what was said before a budget was spent is one."""
    if tale.lost or number < len(tale.replies) - 1:
        return tale.lost
    ended = tale.ended
    if ended is None or ended.outcome == "finished" or ended.trouble is None:
        return None
    if ended.trouble.kind == "refusal" or (ended.outcome == "budget" and tale.replies[number].texts):
        return None
    return ended.trouble


def finish_of(tale: Tale, reply: Reply) -> Finish:
    if reply.asked or tale.ended is None:
        return "stop"
    if tale.ended.trouble:
        return "content_filter" if tale.ended.trouble.kind == "refusal" else "length"
    return FINISH.get(reply.finish, "stop")
