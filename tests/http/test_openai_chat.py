"""The official client library talks to Sylph as a model: chat completions."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai import OpenAI
from tests.http.as_model import PICTURE, Talk, talking
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Talk, None]:
    async with talking(tmp_path_factory.mktemp("chat")) as running:
        yield running


def user(text: Any) -> Any:
    return {"role": "user", "content": text}


def assistant(text: str | None) -> Any:
    return {"role": "assistant", "content": text}


async def ask(talk: Talk, *messages: Any, **how: Any) -> tuple[Any, str]:
    """An answer, and the session that gave it."""
    create: Any = talk.client.chat.completions.with_raw_response.create
    raw = await create(model=how.pop("model", "sylph"), messages=list(messages), **how)
    return raw.parse(), raw.headers["x-sylph-session"]


async def test_a_conversation_goes_on_in_its_session(talk: Talk) -> None:
    system = {"role": "system", "content": "Be brief."}
    first, session = await ask(talk, system, user("hello"))
    text = first.choices[0].message.content
    assert text == "You said 'hello', message 1."
    assert first.choices[0].finish_reason == "stop"
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.total_tokens) == (100, 20, 120)
    assert first.usage.prompt_tokens_details.cached_tokens == 60
    assert "<instructions>\nBe brief.\n</instructions>" in talk.model.requests[-1].users[0]
    second, same = await ask(talk, system, user("hello"), assistant(text), user("and now"))
    assert same == session
    assert "You said 'and now'" in second.choices[0].message.content
    assert "instructions" not in talk.model.requests[-1].users[0]


async def test_what_was_answered_otherwise_is_forked_and_what_was_changed_begins_anew(talk: Talk) -> None:
    first, session = await ask(talk, user("fork me"))
    text = first.choices[0].message.content
    _, same = await ask(talk, user("fork me"), assistant(text), user("one way"))
    _, other = await ask(talk, user("fork me"), assistant(text), user("another way"))
    assert (same, other != session) == (session, True)
    assert not any("one way" in said for said in talk.model.requests[-1].users)
    _, new = await ask(talk, user("fork me"), assistant("I never said that."), user("go on"))
    assert new not in (session, other)
    said = talk.model.requests[-1].users[0]
    assert "assistant: I never said that." in said
    assert said.endswith("go on")


async def test_the_same_words_from_somebody_else_are_another_conversation(talk: Talk) -> None:
    first, session = await ask(talk, user("mine"))
    other = talk.another(await talk.token("chat"))
    raw = await other.chat.completions.with_raw_response.create(
        model="sylph", messages=[user("mine"), assistant(first.choices[0].message.content), user("mine too")]
    )
    assert raw.headers["x-sylph-session"] != session


async def test_a_stream_says_the_same_and_counts_at_its_end(talk: Talk) -> None:
    stream = await talk.client.chat.completions.create(
        model="sylph", messages=[user("look around")], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "I look.\n\nYou said 'look around', message 1."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage and chunks[-1].usage.completion_tokens >= 20 and not chunks[-1].choices
    again, _ = await ask(talk, user("look around"), assistant(text), user("thanks"))
    assert "message 2" in again.choices[0].message.content


async def test_the_blocking_client_works_as_well(talk: Talk) -> None:
    def blocked() -> tuple[Any, Any]:
        with OpenAI(base_url=f"{talk.served.url}/v1", api_key=talk.served.token, max_retries=0) as client:
            made = client.chat.completions.create(model="openai/scripted", messages=[user("blocked")])
            with client.chat.completions.stream(model="sylph", messages=[user("blocked too")]) as stream:
                return made, stream.get_final_completion()

    made, streamed = await asyncio.to_thread(blocked)
    assert (made.model, made.choices[0].message.content) == ("openai/scripted", "You said 'blocked', message 1.")
    assert streamed.choices[0].message.content == "You said 'blocked too', message 1."


async def test_a_question_ends_the_answer_and_the_next_message_answers_it(talk: Talk) -> None:
    first, session = await ask(talk, user("write it"))
    asked = first.choices[0].message.content
    assert "**Sylph asks:**" in asked and "Answer with one of: yes" in asked
    assert not (talk.served.sylph.workspace / "made.txt").exists()
    weak = talk.another(await talk.token("chat"))
    with pytest.raises(openai.PermissionDeniedError, match="approve"):
        await weak.chat.completions.create(
            model="sylph", messages=[user("yes")], extra_headers={"X-Sylph-Session": session}
        )
    second, same = await ask(talk, user("write it"), assistant(asked), user("Yes."))
    assert same == session
    text = second.choices[0].message.content
    assert "You said 'write it'" in text
    assert (talk.served.sylph.workspace / "made.txt").read_text() == "made"
    third, same = await ask(talk, user("write it"), assistant(asked), user("Yes."), assistant(text), user("fine"))
    assert same == session
    assert "'fine', message 2" in third.choices[0].message.content


async def test_anything_but_a_yes_is_a_no(talk: Talk) -> None:
    first, session = await ask(talk, user("write no"))
    second, same = await ask(
        talk, user("write no"), assistant(first.choices[0].message.content), user("rather not, use /tmp")
    )
    assert same == session
    results = [item for item in talk.model.requests[-1].json["messages"] if item["role"] == "tool"]
    assert "rather not, use /tmp" in str(results)
    assert second.choices[0].finish_reason == "stop"


async def test_a_mode_is_chosen_by_the_name_and_never_loosened(talk: Talk) -> None:
    made, session = await ask(talk, user("write planned"), model="sylph/plan")
    assert "Sylph asks" not in made.choices[0].message.content
    found = (await talk.served.client.get(f"/api/v1/sessions/{session}")).json()
    assert found["mode"] == "plan"
    for name in ("sylph/trust", "sylph/auto_noselfmod", "sylph/nonsense"):
        with pytest.raises(openai.NotFoundError):
            await ask(talk, user("hello"), model=name)


async def test_pictures_files_and_schemas_reach_the_model(talk: Talk) -> None:
    parts = [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}},
    ]
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    await ask(
        talk,
        user(parts),
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        max_tokens=77,
        temperature=0.3,
        seed=4,
    )
    sent = talk.model.requests[-1].json
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert 77 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))
    assert PICTURE in str(sent["messages"])
    assert '<file name="a.txt">\nhello\n</file>' in talk.model.requests[-1].users[0]
    await ask(talk, user("json please"), response_format={"type": "json_object"})
    assert "one JSON object" in talk.model.requests[-1].users[0]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"n": 2}, "n"),
        ({"messages": [user("hello"), assistant("yes")]}, "messages"),
        ({"messages": [user([{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}])]}, "messages[0]"),
        (
            {"messages": [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}}])]},
            "messages[0]",
        ),
        ({"messages": [user("  ")]}, "messages"),
        ({"messages": []}, ""),
        ({"messages": [{"role": "wizard", "content": "x"}]}, ""),
    ],
)
async def test_what_cannot_be_had_is_refused_with_its_name(talk: Talk, body: dict[str, Any], param: str) -> None:
    before = len(talk.model.requests)
    with pytest.raises(openai.BadRequestError) as refused:
        await ask(talk, *body.pop("messages", [user("hi")]), **body)
    assert (refused.value.param or "").startswith(param)
    assert len(talk.model.requests) == before


async def test_errors_have_the_classes_that_clients_expect(talk: Talk) -> None:
    with pytest.raises(openai.AuthenticationError):
        await talk.another("sylph_nobody").chat.completions.create(model="sylph", messages=[user("hi")])
    with pytest.raises(openai.PermissionDeniedError):
        await talk.another(await talk.token("read")).chat.completions.create(model="sylph", messages=[user("hi")])
    with pytest.raises(openai.NotFoundError) as missing:
        await ask(talk, user("hi"), model="nobody/nothing")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.RateLimitError):
        await ask(talk, user("limited"))
    with pytest.raises(openai.NotFoundError):
        await ask(talk, user("hi"), extra_headers={"X-Sylph-Session": "nowhere"})
    with pytest.raises(openai.APIError, match="Too fast"):
        async for _ in await talk.client.chat.completions.create(
            model="sylph", messages=[user("limited")], stream=True
        ):
            pass


async def test_why_an_answer_ends_is_told(talk: Talk) -> None:
    assert (await ask(talk, user("long")))[0].choices[0].finish_reason == "length"
    assert (await ask(talk, user("filtered")))[0].choices[0].finish_reason == "content_filter"


async def test_a_named_session_is_gone_on_with(talk: Talk) -> None:
    session = (await talk.served.session(model="openai/scripted"))["id"]
    made, same = await ask(talk, user("here"), metadata={"session": session})
    assert (same, "message 1" in made.choices[0].message.content) == (session, True)
    made, same = await ask(talk, user("here"), extra_headers={"X-Sylph-Session": session})
    assert (same, "message 2" in made.choices[0].message.content) == (session, True)


async def test_a_client_that_tries_again_gets_the_answer_of_its_first_try(talk: Talk) -> None:
    first, session = await ask(talk, user("only once"))
    asked = len(talk.model.requests)
    second, same = await ask(talk, user("only once"), extra_headers={"x-stainless-retry-count": "1"})
    assert (same, len(talk.model.requests)) == (session, asked)
    assert second.choices[0].message.content == first.choices[0].message.content
    _, new = await ask(talk, user("only once"))
    assert new != session


async def test_a_turn_that_nobody_waits_for_is_cancelled_unless_it_is_stored(talk: Talk) -> None:
    sessions = dict[bool, str]()
    talk.gate.clear()
    for store, how in ((False, "endless"), (True, "halting")):
        stream = await talk.client.chat.completions.create(
            model="sylph", messages=[user(f"{how} {store}")], stream=True, store=store
        )
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                break
        sessions[store] = stream.response.headers["x-sylph-session"]
        await stream.close()
    talk.gate.set()
    outcomes = {
        store: (await talk.served.until(session))[-1].data["data"]["outcome"] for store, session in sessions.items()
    }
    assert outcomes == {False: "cancelled", True: "finished"}


async def test_a_waiting_client_that_goes_away_cancels_its_turn(talk: Talk) -> None:
    async def session_of(title: str) -> str:
        listed = (await talk.served.client.get("/api/v1/sessions")).json()["items"]
        return next((one["id"] for one in listed if one["title"] == title), "")

    asking = asyncio.create_task(ask(talk, user("endless and alone")))
    await talk.model.until(lambda: any("endless and alone" in asked.users[0] for asked in talk.model.requests))
    session = await eventually(lambda: session_of("endless and alone"), "the session in the list")
    asking.cancel()
    assert (await talk.served.until(session))[-1].data["data"]["outcome"] == "cancelled"


async def test_models_are_listed(talk: Talk) -> None:
    listed = [model.id async for model in talk.client.models.list()]
    assert listed[:2] == ["sylph", "sylph/ask"]
    assert "sylph/trust" not in listed
    assert any(name.startswith("openai/") for name in listed)
    assert (await talk.client.models.retrieve("sylph/plan")).owned_by == "sylph"
    with pytest.raises(openai.NotFoundError):
        await talk.client.models.retrieve("nobody/nothing")


async def test_a_restart_forgets_no_conversation(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        first, session = await ask(talk, user("remember"))
        sylph, text, token = talk.served.sylph, first.choices[0].message.content, talk.served.token
        talk.served.kill()
        await talk.served.process.wait()
        process = await sylph.start("serve", "--port", "0")
        try:
            assert process.stdout
            line = (await process.stdout.readline()).decode()
            while "http" not in line:
                line = (await process.stdout.readline()).decode()
            talk.served.url = line.strip().rpartition(" ")[2]
            raw = await talk.another(token).chat.completions.with_raw_response.create(
                model="sylph", messages=[user("remember"), assistant(text), user("me")]
            )
            assert raw.headers["x-sylph-session"] == session
        finally:
            process.terminate()
            await process.communicate()


async def test_a_named_session_keeps_its_mode_and_is_loose_only_for_who_may_approve(talk: Talk) -> None:
    loose = (await talk.served.session(mode="trust"))["id"]
    weak = talk.another(await talk.token("read", "chat"))
    with pytest.raises(openai.PermissionDeniedError, match="`trust`") as refused:
        await weak.chat.completions.create(
            model="sylph", messages=[user("write it")], extra_headers={"X-Sylph-Session": loose}
        )
    assert "approve" in str(refused.value)
    for name in ("sylph/plan", "sylph/ask"):
        with pytest.raises(openai.ConflictError, match="works in mode `trust`"):
            await ask(talk, user("look"), model=name, metadata={"session": loose})
    path = f"/api/v1/sessions/{loose}"
    found = (await talk.served.client.get(path)).json()
    assert (found["mode"], found["turns"]) == ("trust", 0)
    await ask(talk, user("here"), metadata={"session": loose})
    assert (await talk.served.client.patch(path, json={"mode": "plan"})).status_code == 200
    await weak.chat.completions.create(model="sylph", messages=[user("see")], extra_headers={"X-Sylph-Session": loose})


async def test_a_stricter_mode_in_a_conversation_leaves_the_session_as_it_was(talk: Talk) -> None:
    first, session = await ask(talk, user("tighten me"))
    text = first.choices[0].message.content
    _, tight = await ask(talk, user("tighten me"), assistant(text), user("only look"), model="sylph/plan")
    assert tight != session
    modes = [(await talk.served.client.get(f"/api/v1/sessions/{id}")).json()["mode"] for id in (session, tight)]
    assert modes == ["ask", "plan"]
    await talk.served.client.patch(f"/api/v1/sessions/{session}", json={"mode": "trust"})
    weak = talk.another(await talk.token("read", "chat"))
    with pytest.raises(openai.PermissionDeniedError):
        last = f"resp_{session}_i1_0"
        await weak.responses.create(model="sylph", input="go on", previous_response_id=last)
