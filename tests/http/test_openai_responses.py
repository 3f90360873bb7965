"""The official client library talks to Sylph as a model: responses."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
import pytest_asyncio
from tests.http.as_model import NUMBERS, PICTURE, Talk, talking
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Talk, None]:
    async with talking(tmp_path_factory.mktemp("responses")) as running:
        yield running


async def ask(talk: Talk, said: Any, **how: Any) -> Any:
    create: Any = talk.client.responses.create
    return await create(model="sylph", input=said, **how)


async def test_a_response_goes_on_from_the_one_before_or_in_a_fork(talk: Talk) -> None:
    first = await ask(talk, "hello", instructions="Be brief.", metadata={"for": "tests"})
    assert (first.status, first.output_text) == ("completed", "You said 'hello', message 1.")
    assert (first.usage.input_tokens, first.usage.output_tokens) == (100, 20)
    assert (first.instructions, first.metadata) == ("Be brief.", {"for": "tests"})
    assert "Be brief." in talk.model.requests[-1].users[0]
    second = await ask(talk, "and now", previous_response_id=first.id)
    assert second.output_text == "You said 'and now', message 2."
    assert second.session == first.session
    other = await ask(talk, "or so", previous_response_id=first.id)
    assert other.output_text == "You said 'or so', message 2."
    assert other.session != first.session
    both = await asyncio.gather(*(ask(talk, f"at once {n}", previous_response_id=second.id) for n in (1, 2)))
    assert {each.output_text for each in both} == {f"You said 'at once {n}', message 3." for n in (1, 2)}
    assert len({each.session for each in both}) == 2


async def test_a_response_is_streamed_in_events(talk: Talk) -> None:
    stream = await talk.client.responses.create(model="sylph", input="look here", stream=True)
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events if "delta" not in event.type]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last: Any = events[-1]
    first: Any = events[0]
    assert text == last.response.output_text == "I look.\n\nYou said 'look here', message 1."
    assert first.response.id == last.response.id
    async with talk.client.responses.stream(model="sylph", input="once more") as helped:
        assert (await helped.get_final_response()).output_text == "You said 'once more', message 1."


async def test_a_question_is_answered_by_the_next_input(talk: Talk) -> None:
    first = await ask(talk, "write that")
    assert "**Sylph asks:**" in first.output_text
    second = await ask(talk, "yes", previous_response_id=first.id)
    assert "You said 'write that'" in second.output_text
    assert (second.session, second.id != first.id) == (first.session, True)
    third = await ask(talk, "good", previous_response_id=second.id)
    assert (third.session, third.output_text) == (first.session, "You said 'good', message 2.")


async def test_a_stored_response_is_found_again_and_put_into_the_trash(talk: Talk) -> None:
    made = await ask(talk, "keep this")
    found = await talk.client.responses.retrieve(made.id)
    assert (found.output_text, found.status, found.created_at) == (made.output_text, "completed", made.created_at)
    await talk.client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        await talk.client.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        await ask(talk, "go on", previous_response_id=made.id)
    passing = await ask(talk, "forget this", store=False)
    for id in (passing.id, "resp_nothing", "resp_a_b_c", f"{made.id}99", "msg_1"):
        with pytest.raises(openai.NotFoundError):
            await talk.client.responses.retrieve(id)


async def ended(talk: Talk, id: str) -> Any:
    """A response as it is when it is over."""

    async def found() -> Any:
        seen = await talk.client.responses.retrieve(id)
        return None if seen.status == "in_progress" else seen

    return await eventually(found, "the end of a response")


async def test_in_the_background_it_is_asked_for_later_and_can_be_cancelled(talk: Talk) -> None:
    begun = await ask(talk, "endless by itself", background=True)
    assert begun.status == "in_progress"
    assert (await talk.client.responses.retrieve(begun.id)).status == "in_progress"
    with pytest.raises(openai.ConflictError):
        await ask(talk, "too early", previous_response_id=begun.id)
    gone = await talk.client.responses.cancel(begun.id)
    assert gone.status == "cancelled"
    assert (gone.id, gone.model, gone.background) == (begun.id, begun.model, True)
    done = await ended(talk, (await ask(talk, "in a moment", background=True)).id)
    assert done.output_text == "You said 'in a moment', message 1."


async def test_a_response_goes_on_where_its_client_has_gone(talk: Talk) -> None:
    talk.gate.clear()
    stream = await talk.client.responses.create(model="sylph", input="halting alone", stream=True)
    first: Any = await anext(aiter(stream))
    await stream.close()
    assert (await talk.client.responses.retrieve(first.response.id)).status == "in_progress"
    talk.gate.set()
    found = await ended(talk, first.response.id)
    assert (found.status, found.output_text) == ("completed", NUMBERS)


async def test_items_parts_and_forms_are_taken(talk: Talk) -> None:
    items: Any = [
        {"role": "developer", "content": "Speak plainly."},
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I was elsewhere.", "annotations": []}]},
        {"type": "reasoning", "summary": []},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
            ],
        },
    ]
    form: Any = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
    await ask(talk, items, text=form, max_output_tokens=55, reasoning={"effort": "low"})
    sent = talk.model.requests[-1].json
    said = talk.model.requests[-1].users[0]
    assert "Speak plainly." in said and "assistant: I was elsewhere." in said and said.endswith("see")
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert PICTURE in str(sent["messages"])


async def test_a_fork_still_sees_the_pictures_and_a_form_counts_for_one_turn(talk: Talk) -> None:
    parts = [
        {"type": "input_text", "text": "look at it"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
    ]
    first = await ask(talk, [{"role": "user", "content": parts}], max_output_tokens=44)
    assert 44 in talk.model.requests[-1].json.values()
    await ask(talk, "one", previous_response_id=first.id)
    assert 44 not in talk.model.requests[-1].json.values()
    other = await ask(talk, "two", previous_response_id=first.id)
    assert other.session != first.session
    assert PICTURE in str(talk.model.requests[-1].json["messages"])


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "web_search"}]},
        {"conversation": "conv_1"},
        {"background": True, "stream": True},
        {"input": [{"type": "function_call_output", "call_id": "1", "output": "x"}]},
        {"input": []},
    ],
)
async def test_what_cannot_be_had_is_refused(talk: Talk, body: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError):
        await ask(talk, body.pop("input", "hi"), **body)


async def test_failures_are_told_in_the_stream_and_outside_of_it(talk: Talk) -> None:
    with pytest.raises(openai.RateLimitError):
        await ask(talk, "limited")
    events = [event async for event in await talk.client.responses.create(model="sylph", input="limited", stream=True)]
    last: Any = events[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "rate_limited")
    assert (await ask(talk, "long")).incomplete_details.reason == "max_output_tokens"
