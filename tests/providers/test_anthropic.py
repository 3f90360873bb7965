"""The Anthropic Messages dialect, byte for byte."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, fail, garbage, say
from tests.net.servers import keeping, serving
from tests.providers.test_dialects import chunks

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, ModelInfo, ModelReply, ModelRequest, ReasoningChunk, TextChunk, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.anthropic.messages import CACHE_MARK, strip_cache_marks
from sylph.providers.dialects.anthropic.provider import AnthropicProvider
from sylph.providers.endpoint import Endpoint
from sylph.providers.vendors import claude_models

SONNET = "claude-sonnet-5"
READ = ToolSpec("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
THINKING = '{"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM+/=="}'
REDACTED = '{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"}'
CALLED = '{"type":"tool_use","id":"toolu_01A","name":"read","input":{"path": "a.txt"}}'


def spoken(url: str = "http://x", client: HttpClient | None = None, **options: Any) -> AnthropicProvider:
    given: dict[str, Any] = {"name": "anthropic", "key_header": "x-api-key", "is_official": False, **options}
    return AnthropicProvider(Endpoint(base_url=url, **given), client or HttpClient())


def ask(*messages: Message, model: str = SONNET, **more: Any) -> ModelRequest:
    return ModelRequest(model=model, system="Be kind.", messages=messages or (Message("user", "Hello"),), **more)


def body(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return json.loads(spoken(**options).body(request))


def stream(*packets: dict[str, Any] | str) -> Step:
    """A stream of exactly these events; text stands for events as they are."""
    events = [
        packet if isinstance(packet, str) else f"event: {packet['type']}\ndata: {json.dumps(packet)}\n\n"
        for packet in packets
    ]
    return garbage("".join(events), "text/event-stream")


def block(at: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": at, "content_block": start},
        *({"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": at},
    ]


def end(reason: str | None = "end_turn", **usage: int) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


ADAPT = {"type": "adaptive", "display": "summarized"}
START: dict[str, Any] = {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}}


async def reply_to(client: HttpClient, *steps: Step, request: ModelRequest | None = None) -> ModelReply:
    async with ModelServer(steps, dialects=["anthropic"]) as server:
        *_, reply = await chunks(spoken(server.root, client), request or ask(tools=(READ,)))
    assert isinstance(reply, ModelReply)
    return reply


def test_what_goes_out_is_exactly_this() -> None:
    png, pdf = Image("d1", "image/png", 3, "a.png"), Image("d2", "application/pdf", 3, "b.pdf")
    native = NativeItems("anthropic/claude-sonnet-5", f"[{THINKING},{REDACTED},{CALLED}]")
    messages = (
        Message("user", "Look", images=(png, pdf)),
        Message("assistant", "", (ToolCall("t1_c1", "read", '{"path": "a.txt"}'),), native=native),
        Message("tool", "content", call="t1_c1", images=(png,)),
        Message("assistant", "More.", (ToolCall("t1_c2", "read", '{"path":"b"}'), ToolCall("t1_c3", "read", "{oops"))),
        Message("tool", "", call="t1_c2"),
        Message("tool", "no", call="t1_c3"),
        Message("user", 'Say "cache_control".'),
    )
    request = ask(*messages, tools=(READ,), max_tokens=99, image=str.encode)
    mark = b',"cache_control":{"type":"ephemeral"}'
    assert spoken().body(request) == b"".join(
        [
            b'{"model":"claude-sonnet-5","max_tokens":99,"stream":true,',
            b'"tools":[{"name":"read","description":"Reads.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}',
            mark,
            b'}],"system":[{"type":"text","text":"Be kind."',
            mark,
            b'}],"messages":[',
            b'{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"ZDE="}},',
            b'{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"ZDI="},"title":"b.pdf"},',
            b'{"type":"text","text":"Look"}]},',
            b'{"role":"assistant","content":[',
            f"{THINKING},{REDACTED},{CALLED}]}},".encode(),
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A","content":[{"type":"text","text":"content"},',
            b'{"type":"image","source":{"type":"base64","media_type":"image/png","data":"ZDE="}}]',
            mark,
            b"}]},",
            b'{"role":"assistant","content":[{"type":"text","text":"More."},',
            b'{"type":"tool_use","id":"t1_c2","name":"read","input":{"path":"b"}},',
            b'{"type":"tool_use","id":"t1_c3","name":"read","input":{"not_json":"{oops"}}]},',
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1_c2"},',
            b'{"type":"tool_result","tool_use_id":"t1_c3","content":[{"type":"text","text":"no"}]}]},',
            b'{"role":"user","content":[{"type":"text","text":"Say \\"cache_control\\"."',
            mark,
            b"}]}]}",
        ]
    )


def test_there_are_four_marks_at_the_most_and_the_last_question_keeps_its_own() -> None:
    talk: list[Message] = []
    before = b""
    for turn in range(4):
        talk += [Message("user", f"note {turn}"), Message("user", f"question {turn}")]
        made = spoken().body(ask(*talk, tools=(READ,)))
        assert made.count(CACHE_MARK) == (3 if not turn else 4)
        assert made.endswith(b'"question %d"%b}]}]}' % (turn, CACHE_MARK))
        # What the last request wrote to the cache, this one reads.
        assert not turn or b'"question %d"%b}]}' % (turn - 1, CACHE_MARK) in made
        assert strip_cache_marks(made).startswith(strip_cache_marks(before).removesuffix(b"]}"))
        before = made
        talk.append(Message("assistant", f"answer {turn}"))


RECORDED = (Path(__file__).parent / "wire" / "anthropic.sse").read_text()


async def test_what_comes_in_is_understood_and_kept_as_it_was(client: HttpClient) -> None:
    async with ModelServer([garbage(RECORDED, "text/event-stream")], dialects=["anthropic"]) as server:
        *before, reply = await chunks(spoken(server.root, client), ask(tools=(READ,)))
    assert [chunk for chunk in before if isinstance(chunk, ReasoningChunk)] == [
        ReasoningChunk("Let me "),
        ReasoningChunk("see."),
    ]
    told = [
        ArgumentsChunk(0, "read", ""),
        ArgumentsChunk(0, "read", '{"path": "a.'),
        ArgumentsChunk(0, "read", 'txt"}'),
    ]
    assert [chunk for chunk in before if isinstance(chunk, ArgumentsChunk)] == told
    assert reply == ModelReply(
        text="",
        finish="calls",
        reasoning="Let me see.",
        calls=(ToolCall("toolu_01A", "read", '{"path": "a.txt"}'),),
        usage=Usage(input=4312, output=89, cached=4000, written=300),
        native=f"[{THINKING},{REDACTED},{CALLED}]",
    )


async def test_thinking_that_is_not_shown_keeps_its_signature(client: HttpClient) -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    said = block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Yes."})
    silent = block(0, start, {"type": "signature_delta", "signature": "S"})
    reply = await reply_to(client, stream(START, *silent, *said, *end()))
    assert json.loads(reply.native)[0] == {"type": "thinking", "thinking": "", "signature": "S"}


async def test_thinking_that_led_to_nothing_does_not_go_back(client: HttpClient) -> None:
    thought = block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "Hm"})
    reply = await reply_to(client, stream(START, *thought, *end("max_tokens")))
    assert (reply.finish, reply.native, reply.reasoning) == ("length", "", "Hm")


async def test_words_and_calls_alone_need_no_words_of_their_own(client: HttpClient) -> None:
    assert (await reply_to(client, say("Hello", calls=(("read", {}),)))).native == ""


async def test_a_service_without_signatures_gets_its_thinking_back_all_the_same(client: HttpClient) -> None:
    reply = await reply_to(client, say("Yes.", reasoning="Hm."))
    assert json.loads(reply.native)[0] == {"type": "thinking", "thinking": "Hm.", "signature": ""}


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "filtered"),
    ],
)
async def test_the_reason_for_the_end_is_told(client: HttpClient, reason: str, finish: str) -> None:
    assert (await reply_to(client, say("x", finish=reason))).finish == finish


async def test_a_turn_that_is_paused_goes_on(client: HttpClient) -> None:
    request = ask(tools=(READ,), search=True)
    steps = [say("First. ", searched=True, finish="pause_turn"), say("Then.")]
    async with ModelServer(steps, dialects=["anthropic"]) as server:
        *before, reply = await chunks(spoken(server.root, client), request)
        again = server.requests[1].json["messages"]
    assert "".join(chunk.text for chunk in before if isinstance(chunk, TextChunk)) == "First. Then."
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.finish, reply.usage) == ("First. Then.", "stop", Usage(20, 10))
    assert [each["type"] for each in again[-1]["content"]] == ["server_tool_use", "web_search_tool_result", "text"]
    assert [each["type"] for each in json.loads(reply.native)][-2:] == ["text", "text"]


async def test_the_services_own_search_takes_the_place_of_ours_and_is_kept(client: HttpClient) -> None:
    request = ask(tools=(READ, ToolSpec("web_search", "Ours.", {"type": "object"})), search=True)
    assert [tool["name"] for tool in body(request)["tools"]] == ["read", "web_search"]
    assert body(request)["tools"][1]["type"] == "web_search_20250305"
    reply = await reply_to(client, say("Found.", searched=True), request=request)
    assert reply.text == "Found."
    assert json.loads(reply.native)[1]["content"][0]["encrypted_content"] == "c2VjcmV0"


async def test_citations_stay_with_their_text(client: HttpClient) -> None:
    citation = {"type": "web_search_result_location", "url": "https://a.example", "encrypted_index": "Eo8B"}
    cited = block(
        0,
        {"type": "text", "text": "", "citations": []},
        {"type": "text_delta", "text": "Yes."},
        {"type": "citations_delta", "citation": citation},
    )
    reply = await reply_to(client, stream(START, *cited, *end()))
    assert json.loads(reply.native) == [{"type": "text", "text": "Yes.", "citations": [citation]}]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (say("Hello", error={"type": "overloaded_error", "message": "Overloaded"}), "overloaded"),
        (say("Hello", error={"type": "api_error", "message": "Internal server error"}), "server_error"),
        (say("Hello", error={"type": "rate_limit_error", "message": "Slow down"}), "rate_limited"),
        (fail(529, "Overloaded", type="overloaded_error"), "overloaded"),
        (fail(400, "prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error"), "overflow"),
        (fail(413, "Request exceeds the maximum size", type="request_too_large"), "overflow"),
        (stream(START, 'data: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n'), "overloaded"),
        (stream('data: {"type": 7}\n\n'), "format"),
    ],
)
async def test_trouble_has_a_kind(client: HttpClient, step: Step, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await reply_to(client, step)
    assert caught.value.failure == kind


async def test_a_server_that_does_not_stream_is_understood(client: HttpClient) -> None:
    reply = await reply_to(client, say("Hello", reasoning="Hm.", calls=(("read", {"path": "a"}),), whole=True))
    assert (reply.text, reply.reasoning, reply.finish, reply.usage) == ("Hello", "Hm.", "calls", Usage(10, 5))
    assert json.loads(reply.calls[0].arguments) == {"path": "a"}


async def test_events_of_the_future_are_passed_over(client: HttpClient) -> None:
    odd = [{"type": "content_block_delta", "index": 9, "delta": {"type": "new_delta"}}, {"type": "new_event"}]
    reply = await reply_to(client, stream(START, *odd, *block(0, {"type": "text", "text": "Yes."}), *end()))
    assert (reply.text, reply.usage.input) == ("Yes.", 3)


@pytest.mark.parametrize(
    ("model", "effort", "wanted"),
    [
        (SONNET, "", {}),
        (SONNET, "none", {"output_config": {"effort": "low"}}),
        (SONNET, "high", {"thinking": ADAPT, "output_config": {"effort": "high"}}),
        ("claude-mythos-preview", "low", {"thinking": ADAPT, "output_config": {"effort": "low"}}),
        ("claude-sonnet-4-5-20250929", "medium", {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
        ("claude-sonnet-4-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-3-7-sonnet-latest", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-3-5-haiku-20241022", "high", {}),
        ("MiniMax-M2", "high", {"thinking": {"type": "enabled", "budget_tokens": 15360}}),
    ],
)  # fmt: skip
def test_effort_is_told_in_the_words_of_the_model(model: str, effort: Any, wanted: dict[str, Any]) -> None:
    made = body(ask(model=model, effort=effort))
    assert {key: made[key] for key in ("thinking", "output_config") if key in made} == wanted


def test_a_small_answer_leaves_no_room_to_think() -> None:
    assert "thinking" not in body(ask(model="claude-sonnet-4-5", effort="high", max_tokens=1500))


@pytest.mark.parametrize(
    ("model", "size"),
    [
        (SONNET, 64_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-sonnet-4-20250514", 32_000),
        ("claude-3-5-sonnet-20241022", 8_192),
        ("claude-3-haiku-20240307", 4_096),
        ("anthropic.claude-v2:1", 4_096),
        ("kimi-k2", 16_384),
    ],
)
def test_how_long_an_answer_may_be_is_always_said(model: str, size: int) -> None:
    assert claude_models.max_output_tokens(model) == size
    assert body(ask(model=model))["max_tokens"] == spoken().info(model).output == size
    told = {model: ModelInfo(name=model, output=77)}
    assert body(ask(model=model), models=told)["max_tokens"] == 77
    assert body(ask(model=model, max_tokens=5), models=told)["max_tokens"] == 5


async def test_a_limit_that_is_too_high_is_learned(client: HttpClient) -> None:
    complaint = fail(400, "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for kimi")
    async with ModelServer([complaint, say("a"), say("b")], dialects=["anthropic"]) as server:
        told = spoken(server.root, client)
        for _ in range(2):
            await chunks(told, ask(model="kimi"))
        assert [asked.json["max_tokens"] for asked in server.requests] == [16384, 8192, 8192]
    assert told.info("kimi").output == 8192


@pytest.mark.parametrize(
    ("complaint", "more", "gone"),
    [
        ("cache_control: Extra inputs are not permitted", {}, "cache_control"),
        ("thinking: Extra inputs are not permitted", {"effort": "high"}, '"thinking"'),
        ("tools.1: web_search is not supported", {"search": True}, "web_search_20250305"),
        ("output_config: Extra inputs are not permitted", {"schema": {"type": "object"}}, '"format"'),
    ],
)
async def test_what_a_server_minds_it_is_not_sent_again(
    client: HttpClient, complaint: str, more: dict[str, Any], gone: str
) -> None:
    async with ModelServer([fail(400, complaint), say("a"), say("b")], dialects=["anthropic"]) as server:
        told = spoken(server.root, client)
        for _ in range(2):
            await chunks(told, ask(tools=(READ,), **more))
        assert [gone in asked.body.decode() for asked in server.requests] == [True, False, False]


async def test_a_server_that_minds_it_still_is_not_asked_for_ever(client: HttpClient) -> None:
    async with ModelServer([fail(400, "no cache_control")], loop=True, dialects=["anthropic"]) as server:
        with pytest.raises(ProviderError, match="refused the request: no cache_control"):
            await chunks(spoken(server.root, client), ask())
        assert len(server.requests) == 2


def test_a_call_that_another_model_began_is_not_thought_on() -> None:
    foreign = (
        Message("user", "x"),
        Message("assistant", "", (ToolCall("c", "read", "{}"),)),
        Message("tool", "y", call="c"),
    )
    old = ask(*foreign, model="claude-sonnet-4-5", effort="high")
    assert "thinking" not in body(old)
    assert "thinking" in body(ask(*foreign, effort="high"))
    own = replace(foreign[1], native=NativeItems("anthropic/claude-sonnet-4-5", f"[{THINKING},{CALLED}]"))
    assert "thinking" in body(ask(foreign[0], own, foreign[2], model="claude-sonnet-4-5", effort="high"))
    assert "thinking" in body(
        ask(*foreign, Message("assistant", "z"), Message("user", "q"), model="claude-sonnet-4-5", effort="high")
    )


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def test_a_form_is_asked_for_in_the_vendors_way() -> None:
    wanted = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    assert body(ask(schema=SCHEMA, effort="low"))["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": wanted},
    }


async def test_where_there_is_no_such_way_a_tool_is_forced(client: HttpClient) -> None:
    request = ask(model="claude-3-5-haiku", schema=SCHEMA, tools=(READ,), effort="high")
    made = body(request)
    assert (made["tool_choice"], "thinking" in made) == ({"type": "tool", "name": "answer"}, False)
    assert [(tool["name"], tool["input_schema"]) for tool in made["tools"]] == [("answer", SCHEMA)]
    reply = await reply_to(client, Step(calls=(("answer", {"n": 3}),)), request=request)
    assert (reply.text, reply.calls, reply.finish, reply.native) == ('{"n": 3}', (), "stop", "")


@pytest.mark.parametrize("base", ["", "/v1", "/v1/"])
async def test_the_address_is_told_with_or_without_its_version(client: HttpClient, base: str) -> None:
    async with ModelServer([say("x")], dialects=["anthropic"]) as server:
        await chunks(spoken(server.root + base, client), ask())
        assert server.requests[0].path == "/v1/messages"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"api_key": " k1 ", "is_official": True}, {"x-api-key": "k1"}),
        ({"api_key": "k1"}, {"x-api-key": "k1", "authorization": "Bearer k1"}),
        ({"api_key": "k1", "is_official": True, "key_header": ""}, {"x-api-key": "k1", "authorization": "Bearer k1"}),
        ({}, {}),
        ({"headers": {"anthropic-version": "v"}}, {"anthropic-version": "v"}),
    ],
)  # fmt: skip
async def test_the_key_goes_where_it_belongs(
    client: HttpClient, options: dict[str, Any], wanted: dict[str, str]
) -> None:
    async with ModelServer([say("x")], dialects=["anthropic"]) as server:
        await chunks(spoken(server.root, client, **options), ask())
        sent = server.requests[0].headers
    named = ("x-api-key", "authorization", "anthropic-beta", "anthropic-version")
    assert {name: sent[name] for name in named if name in sent} == {"anthropic-version": "2023-06-01"} | wanted


async def test_older_models_are_told_to_think_between_calls(client: HttpClient) -> None:
    async with ModelServer([say("x")], dialects=["anthropic"]) as server:
        await chunks(spoken(server.root, client), ask(model="claude-sonnet-4-5", effort="low"))
        assert server.requests[0].headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"


def page(data: list[dict[str, Any]], **more: Any) -> bytes:
    said = json.dumps({"data": data, **more}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)


async def test_the_list_of_models_has_pages(client: HttpClient) -> None:
    first = page([{"id": SONNET, "max_input_tokens": 1_000_000, "max_tokens": 128_000}], has_more=True, last_id=SONNET)
    second = page([{"id": "claude-haiku-4-5"}, {"type": "model"}], has_more=False)
    async with serving(keeping(first, second)) as port:
        told = spoken(f"http://127.0.0.1:{port}", client)
        found = await told.models()
    assert [(info.name, info.window) for info in found] == [(SONNET, 1_000_000), ("claude-haiku-4-5", 200_000)]
    # A body must not depend on whether somebody looked at the list: what it asks for comes from the name alone.
    assert told.info(SONNET).output == 64_000


async def test_a_list_that_does_not_end_is_left(client: HttpClient) -> None:
    endless = page([{"id": "a"}], has_more=True, last_id="a")
    async with serving(keeping(endless, endless)) as port:
        assert [info.name for info in await spoken(f"http://127.0.0.1:{port}", client).models()] == ["a"]
    async with serving(keeping(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")) as port:
        with pytest.raises(ProviderError, match="sent no list of models"):
            await spoken(f"http://127.0.0.1:{port}", client).models()
