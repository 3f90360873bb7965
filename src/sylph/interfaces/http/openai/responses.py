"""`/v1/responses`: a conversation that Sylph keeps, gone on with by the id of a response."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from itertools import count
from typing import Annotated, Any

import msgspec
from fastapi import Path, Request
from starlette.responses import Response, StreamingResponse

from sylph.core.commands import Delete, Interrupt
from sylph.core.errors import SylphError, UserError
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import JSON, RouteGroup
from sylph.interfaces.http.openai.chat import HEADERS, SESSION_HEADER, SSE, RetryCountHeader, SessionHeader, reply_error
from sylph.interfaces.http.openai.conversation import ConversationPosition, find_reply
from sylph.interfaces.http.openai.errors import failure_answer
from sylph.interfaces.http.openai.message_parts import unsupported_error
from sylph.interfaces.http.openai.pending_reply import HEARTBEAT_COMMENT, PendingReply, make_pending_reply
from sylph.interfaces.http.openai.request_bodies import ResponseBody, parse_response_body
from sylph.interfaces.http.openai.response_types import (
    DeletedResponse,
    OutputItem,
    OutputPart,
    ResponseAnswer,
    ResponseEvent,
    build_response,
    output_item,
    response_id,
)
from sylph.interfaces.http.openai.start import RESPONSE_PREFIX, start_reply
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("openai", prefix="/v1")
ResponseId = Annotated[str, Path(max_length=200, description="The id of a response that was stored.")]
ANSWER_EXAMPLE = ResponseAnswer(
    id="resp_h7k2m9qxwz4d_i1_0",
    created_at=1_762_000_000,
    status="completed",
    model="openai/gpt-5",
    output=[
        OutputItem(id="msg_h7k2m9qxwz4d_i1_0", status="completed", content=[OutputPart(text="A README and tests.")])
    ],
    session="h7k2m9qxwz4d",
)


@routes.post(
    "/responses",
    scope="chat",
    gives=ResponseAnswer,
    attaches=True,
    streams=ResponseEvent,
    errors=(402, 404, 409, 502, 503),
    example=ResponseBody(model="sylph", input="What is in this folder?"),
    answer=ANSWER_EXAMPLE,
)
async def create_response(
    server: ServerState,
    principal: Principal,
    request: Request,
    body: ResponseBody,
    x_sylph_session: SessionHeader = "",
    x_stainless_retry_count: RetryCountHeader = 0,
) -> Response:
    """Answer a message, in a new conversation or after `previous_response_id`.

    What was answered after that response already is left as it is: the conversation then goes on in a fork. Sylph
    works with its own tools. Where it has to ask, the response ends with the question, and the next input answers it.
    """
    wanted = parse_response_body(body)
    if x_sylph_session:
        wanted = msgspec.structs.replace(wanted, metadata={**wanted.metadata, "session": x_sylph_session})
    if body.background and (body.stream or not wanted.store):
        raise unsupported_error("What goes on in the background is stored, and not streamed.", "background")
    begun = await start_reply(server, principal, wanted, again=x_stainless_retry_count > 0)
    told = make_pending_reply(server, request, begun, stays=wanted.store)
    headers = {**HEADERS, SESSION_HEADER: begun.session}
    more: dict[str, Any] = {
        "store": wanted.store,
        "background": bool(body.background),
        "model": (await server.app.runtime.find_session(begun.session)).model,
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "metadata": wanted.metadata,
    }
    if body.stream:
        return StreamingResponse(_stream_events(told, more), headers=headers, media_type=SSE)
    if body.background:
        made = _initial_answer(told, more)
        return Response(msgspec.json.encode(made), 200, headers, JSON)
    tale = await told.wait_complete()
    if trouble := reply_error(tale, begun.number):
        status, error = failure_answer(trouble)
        return Response(msgspec.json.encode(error), status, headers, JSON)
    return Response(msgspec.json.encode(build_response(tale, begun.number, **more)), 200, headers, JSON)


@routes.get("/responses/{id}", scope="chat", gives=ResponseAnswer, errors=(404,), answer=ANSWER_EXAMPLE)
async def get_response(server: ServerState, id: ResponseId) -> ResponseAnswer:
    """Get a response that was stored, as far as it has come."""
    found = await find_reply(server.app.runtime, id, RESPONSE_PREFIX)
    return _stored_answer(found)


@routes.post("/responses/{id}/cancel", scope="chat", gives=ResponseAnswer, errors=(404, 409), answer=ANSWER_EXAMPLE)
async def cancel_response(server: ServerState, id: ResponseId) -> ResponseAnswer:
    """Cancel a response that is not whole yet; one that is stays as it is."""
    runtime = server.app.runtime
    found = await find_reply(runtime, id, RESPONSE_PREFIX)
    if not found.turn.is_over and found.summary.open_input == found.turn.input:
        with suppress(UserError):
            await runtime.send(found.turn.session, Interrupt(reason="cancelled by the client"))
            await runtime.wait_until_idle(found.turn.session)
    found = await find_reply(runtime, id, RESPONSE_PREFIX)
    return _stored_answer(found)


@routes.delete(
    "/responses/{id}",
    scope="chat",
    gives=DeletedResponse,
    errors=(404, 409),
    answer=DeletedResponse(id="resp_h7k2m9qxwz4d_i1_0"),
)
async def delete_response(server: ServerState, id: ResponseId) -> DeletedResponse:
    """Put the conversation of a response into the trash, from which it can be restored."""
    found = await find_reply(server.app.runtime, id, RESPONSE_PREFIX)
    await server.app.runtime.send(found.turn.session, Delete())
    return DeletedResponse(id=id)


def _stored_answer(found: ConversationPosition) -> ResponseAnswer:
    return build_response(found.turn, found.number, background=found.background, model=found.summary.model)


async def _stream_events(told: PendingReply, more: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    tale, number, numbers = told.turn, told.handle.number, count()
    for type in ("response.created", "response.in_progress"):
        yield _encode_event(numbers, type, response=_initial_answer(told, more))
    opened = False
    try:
        async for piece in told.stream_pieces():
            if piece is None or not piece.text:
                yield HEARTBEAT_COMMENT if piece is None else b""
                continue
            if not opened:
                opened = True
                for each in _opening_events(told, numbers):
                    yield each
            yield _encode_event(
                numbers, "response.output_text.delta", **_part_position(told), delta=piece.text, logprobs=[]
            )
    except SylphError as error:
        yield b"event: error\ndata: %s\n\n" % msgspec.json.encode(
            {
                "type": "error",
                "sequence_number": next(numbers),
                **msgspec.to_builtins(failure_answer(error.trouble)[1].error),
            }
        )
        return
    if opened:
        for each in _closing_events(told, numbers):
            yield each
    made = build_response(tale, number, **more)
    last = {"completed": "completed", "incomplete": "incomplete"}.get(made.status, "failed")
    yield _encode_event(numbers, f"response.{last}", response=made)


def _initial_answer(told: PendingReply, more: dict[str, Any]) -> ResponseAnswer:
    """The response before anything has come of it."""
    made = build_response(told.turn, 0, **more)
    begun = told.handle
    id = response_id(begun.session, begun.input, begun.number, store=more["store"], background=more["background"])
    return msgspec.structs.replace(made, id=id)


def _opening_events(told: PendingReply, numbers: Iterator[int]) -> Iterator[bytes]:
    item = output_item(told.turn, told.handle.number, "in_progress")
    yield _encode_event(numbers, "response.output_item.added", output_index=0, item=item)
    yield _encode_event(numbers, "response.content_part.added", **_part_position(told), part=OutputPart(text=""))


def _closing_events(told: PendingReply, numbers: Iterator[int]) -> Iterator[bytes]:
    text = told.turn.replies[told.handle.number].sent_text
    yield _encode_event(numbers, "response.output_text.done", **_part_position(told), text=text, logprobs=[])
    yield _encode_event(numbers, "response.content_part.done", **_part_position(told), part=OutputPart(text=text))
    item = output_item(told.turn, told.handle.number, "completed")
    yield _encode_event(numbers, "response.output_item.done", output_index=0, item=item)


def _part_position(told: PendingReply) -> dict[str, Any]:
    item = output_item(told.turn, told.handle.number, "in_progress")
    return {"item_id": item.id, "output_index": 0, "content_index": 0}


def _encode_event(numbers: Iterator[int], type: Any, **data: Any) -> bytes:
    event = ResponseEvent(type=type, sequence_number=next(numbers), **data)
    return b"event: %s\ndata: %s\n\n" % (type.encode(), msgspec.json.encode(event))
