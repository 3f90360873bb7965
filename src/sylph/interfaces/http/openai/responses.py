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
from sylph.interfaces.http.house import House
from sylph.interfaces.http.openai.begin import RESPONSE, begin
from sylph.interfaces.http.openai.bodies import ResponseBody, from_response
from sylph.interfaces.http.openai.chat import HEADERS, SESSION, SSE, Again, Session, troubled
from sylph.interfaces.http.openai.errors import failed
from sylph.interfaces.http.openai.live import BEATS, Live, live
from sylph.interfaces.http.openai.parts import refuse
from sylph.interfaces.http.openai.response import (
    Deleted,
    OutputItem,
    OutputPart,
    ResponseAnswer,
    ResponseEvent,
    answer_of,
    item_of,
    response_id,
)
from sylph.interfaces.http.openai.thread import Found, by_id
from sylph.interfaces.http.route import JSON, Routes
from sylph.interfaces.http.who import Who

routes = Routes("openai", prefix="/v1")
Id = Annotated[str, Path(max_length=200, description="The id of a response that was stored.")]
MADE = ResponseAnswer(
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
    answer=MADE,
)
async def create_response(
    house: House,
    who: Who,
    request: Request,
    body: ResponseBody,
    x_sylph_session: Session = "",
    x_stainless_retry_count: Again = 0,
) -> Response:
    """Answer a message, in a new conversation or after `previous_response_id`.

    What was answered after that response already is left as it is: the conversation then goes on in a fork. Sylph
    works with its own tools. Where it has to ask, the response ends with the question, and the next input answers it.
    """
    wanted = from_response(body)
    if x_sylph_session:
        wanted = msgspec.structs.replace(wanted, metadata={**wanted.metadata, "session": x_sylph_session})
    if body.background and (body.stream or not wanted.store):
        raise refuse("What goes on in the background is stored, and not streamed.", "background")
    begun = await begin(house, who, wanted, again=x_stainless_retry_count > 0)
    told = live(house, request, begun, stays=wanted.store)
    headers = {**HEADERS, SESSION: begun.session}
    more: dict[str, Any] = {
        "store": wanted.store,
        "background": bool(body.background),
        "model": (await house.app.runtime.find(begun.session)).model,
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "metadata": wanted.metadata,
    }
    if body.stream:
        return StreamingResponse(_stream(told, more), headers=headers, media_type=SSE)
    if body.background:
        made = _begun(told, more)
        return Response(msgspec.json.encode(made), 200, headers, JSON)
    tale = await told.whole()
    if trouble := troubled(tale, begun.number):
        status, error = failed(trouble)
        return Response(msgspec.json.encode(error), status, headers, JSON)
    return Response(msgspec.json.encode(answer_of(tale, begun.number, **more)), 200, headers, JSON)


@routes.get("/responses/{id}", scope="chat", gives=ResponseAnswer, errors=(404,), answer=MADE)
async def get_response(house: House, id: Id) -> ResponseAnswer:
    """Get a response that was stored, as far as it has come."""
    found = await by_id(house.app.runtime, id, RESPONSE)
    return _kept(found)


@routes.post("/responses/{id}/cancel", scope="chat", gives=ResponseAnswer, errors=(404, 409), answer=MADE)
async def cancel_response(house: House, id: Id) -> ResponseAnswer:
    """Cancel a response that is not whole yet; one that is stays as it is."""
    runtime = house.app.runtime
    found = await by_id(runtime, id, RESPONSE)
    if not found.tale.over and found.summary.open_input == found.tale.input:
        with suppress(UserError):
            await runtime.send(found.tale.session, Interrupt(reason="cancelled by the client"))
            await runtime.settled(found.tale.session)
    found = await by_id(runtime, id, RESPONSE)
    return _kept(found)


@routes.delete(
    "/responses/{id}", scope="chat", gives=Deleted, errors=(404, 409), answer=Deleted(id="resp_h7k2m9qxwz4d_i1_0")
)
async def delete_response(house: House, id: Id) -> Deleted:
    """Put the conversation of a response into the trash, from which it can be restored."""
    found = await by_id(house.app.runtime, id, RESPONSE)
    await house.app.runtime.send(found.tale.session, Delete())
    return Deleted(id=id)


def _kept(found: Found) -> ResponseAnswer:
    return answer_of(found.tale, found.number, background=found.background, model=found.summary.model)


async def _stream(told: Live, more: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    tale, number, numbers = told.tale, told.begun.number, count()
    for type in ("response.created", "response.in_progress"):
        yield _event(numbers, type, response=_begun(told, more))
    opened = False
    try:
        async for piece in told.pieces():
            if piece is None or not piece.text:
                yield BEATS if piece is None else b""
                continue
            if not opened:
                opened = True
                for each in _opening(told, numbers):
                    yield each
            yield _event(numbers, "response.output_text.delta", **_at(told), delta=piece.text, logprobs=[])
    except SylphError as error:
        yield b"event: error\ndata: %s\n\n" % msgspec.json.encode(
            {"type": "error", "sequence_number": next(numbers), **msgspec.to_builtins(failed(error.trouble)[1].error)}
        )
        return
    if opened:
        for each in _closing(told, numbers):
            yield each
    made = answer_of(tale, number, **more)
    last = {"completed": "completed", "incomplete": "incomplete"}.get(made.status, "failed")
    yield _event(numbers, f"response.{last}", response=made)


def _begun(told: Live, more: dict[str, Any]) -> ResponseAnswer:
    """The response before anything has come of it."""
    made = answer_of(told.tale, 0, **more)
    begun = told.begun
    id = response_id(begun.session, begun.input, begun.number, store=more["store"], background=more["background"])
    return msgspec.structs.replace(made, id=id)


def _opening(told: Live, numbers: Iterator[int]) -> Iterator[bytes]:
    item = item_of(told.tale, told.begun.number, "in_progress")
    yield _event(numbers, "response.output_item.added", output_index=0, item=item)
    yield _event(numbers, "response.content_part.added", **_at(told), part=OutputPart(text=""))


def _closing(told: Live, numbers: Iterator[int]) -> Iterator[bytes]:
    text = told.tale.replies[told.begun.number].shown
    yield _event(numbers, "response.output_text.done", **_at(told), text=text, logprobs=[])
    yield _event(numbers, "response.content_part.done", **_at(told), part=OutputPart(text=text))
    item = item_of(told.tale, told.begun.number, "completed")
    yield _event(numbers, "response.output_item.done", output_index=0, item=item)


def _at(told: Live) -> dict[str, Any]:
    item = item_of(told.tale, told.begun.number, "in_progress")
    return {"item_id": item.id, "output_index": 0, "content_index": 0}


def _event(numbers: Iterator[int], type: Any, **data: Any) -> bytes:
    event = ResponseEvent(type=type, sequence_number=next(numbers), **data)
    return b"event: %s\ndata: %s\n\n" % (type.encode(), msgspec.json.encode(event))
