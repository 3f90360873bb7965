"""The Responses dialect over HTTP: the exact bytes that go out, and what comes of those that come in."""

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, assert_extends, call, calls, fail, garbage, say
from tests.net.servers import saying, serving

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import (
    ArgumentsChunk,
    Chunk,
    KeepAlive,
    ModelReply,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolSpec,
)
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.openai_responses.provider import OpenAIResponsesProvider
from sylph.providers.dialects.strict_schema import is_strict
from sylph.providers.endpoint import Endpoint

TOOLS = (ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
HELLO = ModelRequest(model="gpt-5", system="Be kind.", messages=(Message("user", "Hello"),), tools=TOOLS, family="fam")
BLANK = ModelRequest(model="gpt-5", system="s", messages=())
UNICODE = "Grüße, 世界, 🙂 and more of it"


def provider(url: str, client: HttpClient, **options: Any) -> OpenAIResponsesProvider:
    return OpenAIResponsesProvider(Endpoint(name="test", base_url=url, key_from="TEST_KEY", **options), client)


async def chunks(responses: OpenAIResponsesProvider, request: ModelRequest = HELLO) -> list[Chunk]:
    async with aclosing(responses.stream(request, responses.body(request))) as stream:
        return [chunk async for chunk in stream]


async def answer(step: Step, client: HttpClient) -> tuple[list[Chunk], ModelReply]:
    async with ModelServer([step], dialects=("responses",)) as server:
        *before, reply = await chunks(provider(server.url, client))
    assert isinstance(reply, ModelReply)
    return [chunk for chunk in before if chunk != KeepAlive()], reply


async def failing(step: Step, client: HttpClient) -> ProviderError:
    async with ModelServer([step], dialects=("responses",)) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.url, client, api_key="sk-secret"))
    return caught.value


def stream(*events: Mapping[str, Any] | str) -> Step:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in events]
    return Step(body="".join(f"data: {line}\n\n" for line in lines), headers={"content-type": "text/event-stream"})


def items_of(request: ModelRequest, client: HttpClient, **options: Any) -> list[dict[str, Any]]:
    return json.loads(provider("http://x/v1", client, **options).body(request))["input"]


def test_the_exact_bytes_of_a_request(client: HttpClient) -> None:
    assert provider("http://x/v1", client).body(replace(HELLO, max_tokens=9, effort="low")) == (
        b'{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],'
        b'"prompt_cache_key":"fam","reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":9,'
        b'"tools":[{"type":"function","name":"read","description":"Reads a file.",'
        b'"parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}],'
        b'"instructions":"Be kind.",'
        b'"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]}]}'
    )


def test_a_model_that_does_not_think_is_not_asked_to(client: HttpClient) -> None:
    body = json.loads(provider("http://x/v1", client).body(replace(HELLO, model="gpt-4.1-mini", effort="high")))
    assert not body.keys() & {"reasoning", "include"}
    assert body["store"] is False


# The bytes of a real answer's shape: summary, reasoning item, message, call; events that nobody needs between.
RECORDED = (
    b'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_a",'
    b'"object":"response","status":"in_progress","output":[],"usage":null}}\n\n'
    b'event: response.output_item.added\ndata: {"type":"response.output_item.added","sequence_number":2,'
    b'"output_index":0,"item":{"id":"rs_a","type":"reasoning","summary":[]}}\n\n'
    b'event: response.reasoning_summary_part.added\ndata: {"type":"response.reasoning_summary_part.added",'
    b'"item_id":"rs_a","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}\n\n'
    b'event: response.reasoning_summary_text.delta\ndata: {"type":"response.reasoning_summary_text.delta",'
    b'"item_id":"rs_a","output_index":0,"summary_index":0,"delta":"**Look","obfuscation":"x9"}\n\n'
    b'event: response.reasoning_summary_text.delta\ndata: {"type":"response.reasoning_summary_text.delta",'
    b'"item_id":"rs_a","output_index":0,"summary_index":1,"delta":"Then act"}\n\n'
    b'event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":0,"item":'
    b'{"id":"rs_a","type":"reasoning","encrypted_content":"gAAAAA\\u00fc==","summary":[{"type":"summary_text",'
    b'"text":"**Look"},  {"type":"summary_text","text":"Then act"}]}}\n\n'
    b'event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":1,"item":'
    b'{"id":"msg_a","type":"message","status":"in_progress","role":"assistant","content":[]}}\n\n'
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_a",'
    b'"output_index":1,"content_index":0,"delta":"I see","logprobs":[]}\n\n'
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_a",'
    b'"output_index":1,"content_index":0,"delta":"","logprobs":[]}\n\n'
    b'event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":1,"item":'
    b'{"id":"msg_a","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text",'
    b'"annotations":[],"text":"I see"}]}}\n\n'
    b'event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":2,"item":'
    b'{"id":"fc_a","type":"function_call","status":"in_progress","arguments":"","call_id":"call_a","name":"read"}}\n\n'
    b'event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta",'
    b'"item_id":"fc_a","output_index":2,"delta":"{\\"path\\":"}\n\n'
    b'event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta",'
    b'"item_id":"fc_a","output_index":2,"delta":"\\"a\\"}"}\n\n'
    b'event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":2,"item":'
    b'{"id":"fc_a","type":"function_call","status":"completed","arguments":"{\\"path\\":\\"a\\"}",'
    b'"call_id":"call_a","name":"read"}}\n\n'
    b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"resp_a","object":"response",'
    b'"status":"completed","output":[],"usage":{"input_tokens":75,"input_tokens_details":{"cached_tokens":64},'
    b'"output_tokens":40,"output_tokens_details":{"reasoning_tokens":33},"total_tokens":115}}}\n\n'
)
NATIVE = (
    '[{"id":"rs_a","type":"reasoning","encrypted_content":"gAAAAA\\u00fc==","summary":[{"type":"summary_text",'
    '"text":"**Look"},  {"type":"summary_text","text":"Then act"}]},'
    '{"id":"msg_a","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text",'
    '"annotations":[],"text":"I see"}]},'
    '{"id":"fc_a","type":"function_call","status":"completed","arguments":"{\\"path\\":\\"a\\"}",'
    '"call_id":"call_a","name":"read"}]'
)


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
async def test_a_recorded_answer_wherever_it_is_cut(client: HttpClient, size: int) -> None:
    step = Step(body=RECORDED.decode(), headers={"content-type": "text/event-stream"}, split=size)
    before, reply = await answer(step, client)
    assert before == [
        ReasoningChunk("**Look"),
        ReasoningChunk("\n\nThen act"),
        TextChunk("I see"),
        ArgumentsChunk(0, "read", ""),
        ArgumentsChunk(0, "read", '{"path":'),
        ArgumentsChunk(0, "read", '"a"}'),
    ]
    assert reply == ModelReply(
        text="I see",
        finish="calls",
        reasoning="**Look\n\nThen act",
        calls=(ToolCall("call_a", "read", '{"path":"a"}'),),
        usage=Usage(input=75, output=40, cached=64, reasoning=33),
        native=NATIVE,
    )


def test_an_answer_goes_back_byte_for_byte_and_its_results_carry_its_ids(client: HttpClient) -> None:
    said = Message(
        "assistant",
        "I see",
        (ToolCall("ours", "read", '{"path":"a"}'),),
        native=NativeItems("test/gpt-5", NATIVE),
    )
    request = replace(BLANK, messages=(Message("user", "q"), said, Message("tool", "text", call="ours")))
    body = provider("http://x/v1", client).body(request)
    assert NATIVE[1:-1].encode() in body
    assert body.endswith(b',{"type":"function_call_output","call_id":"call_a","output":"text"}]}')


@pytest.mark.parametrize("native", [NativeItems("test/other", NATIVE), NativeItems("elsewhere/gpt-5", NATIVE), None])
def test_for_another_model_the_thoughts_of_an_answer_do_not_exist(
    client: HttpClient, native: NativeItems | None
) -> None:
    said = Message("assistant", "I see", (ToolCall("c", "read", '{"path":"a"}'),), reasoning="hm", native=native)
    request = replace(BLANK, messages=(Message("user", "q"), said, Message("tool", "text", call="c")))
    assert items_of(request, client)[1:] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see"}]},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call_output", "call_id": "c", "output": "text"},
    ]


@pytest.mark.parametrize("items", ['{"thinking":"hm"}', "[1]", '"x"', "nonsense", "[]"])
def test_words_of_another_dialect_do_not_exist_either(client: HttpClient, items: str) -> None:
    said = Message("assistant", "I see", native=NativeItems("test/gpt-5", items))
    assert items_of(replace(BLANK, messages=(said,)), client) == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see"}]}
    ]


def test_an_answer_that_loses_its_own_words_is_told_by_our_ids(client: HttpClient) -> None:
    own = Message("assistant", "", (ToolCall("ours", "read", "{}"),), native=NativeItems("test/gpt-5", NATIVE))
    result, responses = Message("tool", "text", call="ours"), provider("http://x/v1", client)
    responses.body(replace(BLANK, messages=(own, result)))
    said = json.loads(responses.body(replace(BLANK, messages=(replace(own, native=None), result))))["input"]
    assert [each["call_id"] for each in said] == ["ours", "ours"]


async def test_plain_words_need_no_words_of_the_services_own(client: HttpClient) -> None:
    _, reply = await answer(say("Hello"), client)
    assert (reply.native, reply.text, reply.finish) == ("", "Hello", "stop")


def test_images_and_documents_are_shown(client: HttpClient) -> None:
    data = {"p": b"pixels", "d": b"%PDF"}
    picture, paper = Image("p", "image/png", name="a.png"), Image("d", "application/pdf", name="b.pdf")
    gone = Image("x", "image/png", name="c.png")
    request = replace(
        BLANK,
        messages=(Message("user", "see", images=(picture, paper)), Message("tool", "ok", call="c", images=(gone,))),
        image=data.get,
    )
    user, result = items_of(request, client)
    assert user["content"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,cGl4ZWxz"},
        {"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
    ]
    assert result["output"] == [
        {"type": "input_text", "text": "ok"},
        {"type": "input_text", "text": "[c.png: the image is gone]"},
    ]


async def test_a_model_that_takes_no_images_is_told_in_words(client: HttpClient) -> None:
    script = [fail(400, "image_url is only supported by certain models"), say("ok"), say("ok")]
    picture = Image("d", "image/png", name="a.png")
    request = replace(HELLO, messages=(Message("user", "see", images=(picture,)),), image={"d": b"x"}.get)
    async with ModelServer(script, dialects=("responses",)) as server:
        responses = provider(server.url, client)
        await chunks(responses, request)
        await chunks(responses, request)
    assert [b"not shown, this model" in asked.body for asked in server.requests] == [False, True, True]


def test_a_schema_is_asked_for_and_held_to_where_that_is_possible(client: HttpClient) -> None:
    free = {"type": "object", "properties": {"n": {"type": "integer"}}}
    strict = {**free, "required": ["n"], "additionalProperties": False}
    for schema, held in ((free, False), (strict, True), ({**strict, "properties": {"n": free}}, False)):
        body = json.loads(provider("http://x/v1", client).body(replace(HELLO, schema=schema)))
        told = {"type": "json_schema", "name": "answer", "schema": schema, "strict": held}
        assert body["text"] == {"format": told}
    assert is_strict({"anyOf": [strict, {"type": "null"}]})


async def test_the_service_may_search_by_itself(client: HttpClient) -> None:
    body = json.loads(provider("http://x/v1", client).body(replace(HELLO, search=True)))
    assert body["tools"][1:] == [{"type": "web_search"}]
    before, reply = await answer(say("News.", searched=True), client)
    assert before == [TextChunk("News.")]
    assert "web_search_call" in reply.native


def test_the_cache_key_is_that_of_the_family(client: HttpClient) -> None:
    body = json.loads(provider("http://x/v1", client).body(replace(HELLO, family="")))
    assert "prompt_cache_key" not in body


async def test_consecutive_requests_begin_with_the_same_bytes(client: HttpClient) -> None:
    script = [call("read", path="a", how={"reasoning": "hm", "encrypted": "e"}), say("Done"), say("Again")]
    messages = HELLO.messages
    async with ModelServer(script, dialects=("responses",)) as server:
        responses = provider(server.url, client)
        for number in range(3):
            request = replace(HELLO, messages=messages)
            *_, reply = await chunks(responses, request)
            assert isinstance(reply, ModelReply)
            native = NativeItems("test/gpt-5", reply.native) if reply.native else None
            ours = tuple(replace(each, id=f"ours_{number}") for each in reply.calls)
            messages += (Message("assistant", reply.text, ours, native=native),)
            messages += (Message("tool", "x", call=ours[0].id) if ours else Message("user", "more"),)
    assert_extends(server.requests)
    assert b'"call_id":"call_read_0","output":"x"' in server.requests[1].body


ODDITIES = [
    say(UNICODE, chunk=3),
    say(UNICODE, split=1),
    say(UNICODE, split=5, chunk=100),
    say(UNICODE, empties=2),
    say(UNICODE, keepalives=3, delay=0.001),
    say(UNICODE, whole=True),
    say(UNICODE, pieces=False),
]


@pytest.mark.parametrize("step", ODDITIES, ids=str)
async def test_the_same_words_however_they_come(client: HttpClient, step: Step) -> None:
    before, reply = await answer(step, client)
    assert "".join(chunk.text for chunk in before if isinstance(chunk, TextChunk)) == reply.text == UNICODE
    assert reply.usage == Usage(input=10, output=5)


@pytest.mark.parametrize("how", [{}, {"whole": True}, {"pieces": False}, {"split": 3}, {"empties": 1}], ids=str)
async def test_parallel_calls_however_they_come(client: HttpClient, how: dict[str, Any]) -> None:
    wanted: tuple[tuple[str, dict[str, str]], ...] = (("read", {"path": "ä"}), ("read", {"path": "b"}), ("list", {}))
    before, reply = await answer(calls(*wanted, **how), client)
    told = [
        [piece.text for piece in before if isinstance(piece, ArgumentsChunk) and piece.index == at] for at in range(3)
    ]
    assert [json.loads("".join(pieces)) for pieces in told] == [given for _, given in wanted]
    assert [(each.id, each.name, json.loads(each.arguments)) for each in reply.calls] == [
        ("call_read_0", "read", {"path": "ä"}),
        ("call_read_1", "read", {"path": "b"}),
        ("call_list_2", "list", {}),
    ]


@pytest.mark.parametrize(("finish", "told"), [("length", "length"), ("content_filter", "filtered"), (None, "stop")])
async def test_how_an_answer_ended(client: HttpClient, finish: str | None, told: str) -> None:
    _, reply = await answer(say("Some", finish=finish, encrypted="e" if finish == "length" else ""), client)
    assert (reply.finish, reply.text, reply.native) == (told, "Some", "")


async def test_a_refusal_is_shown_and_told_as_one(client: HttpClient) -> None:
    before, reply = await answer(say("", refusal="I cannot help with that."), client)
    assert "".join(chunk.text for chunk in before if isinstance(chunk, TextChunk)) == "I cannot help with that."
    assert (reply.finish, reply.text) == ("filtered", "I cannot help with that.")


FAILURES = [
    (say("x", error={"code": "server_error", "message": "Oops"}), "server_error"),
    (say("x", error={"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."}), "rate_limited"),
    (say("x", error={"code": "context_length_exceeded", "message": "Too long"}), "overflow"),
    (say("x", error={"code": "insufficient_quota", "message": "Out"}), "auth"),
    (say("x", error={"code": "invalid_prompt", "message": "Invalid prompt: flagged"}), "refusal"),
    (say("x", error={"event": "error", "code": "server_is_overloaded", "message": "at capacity"}), "overloaded"),
    (stream({"type": "error", "error": {"type": "invalid_request_error", "message": "No"}}), "bad_request"),
    (stream({"error": {"message": "late", "code": 503}}), "overloaded"),
    (say("x", done=False), "cut"),
    (say("xy" * 99, drop=True, at="stream"), "cut"),
    (stream("[DONE]"), "format"),
    (stream("not json"), "format"),
    (stream({"type": "response.completed", "response": "what"}), "format"),
    (garbage("<html>"), "format"),
    (garbage('{"object": "list"}', "application/json"), "format"),
    (garbage('{"status": "failed", "error": {"code": "server_error", "message": "x"}}'), "server_error"),
    (fail(429, "Slow down", headers={"retry-after": "7"}), "rate_limited"),
    (fail(429, "Slow down"), "rate_limited"),
    (fail(401, "Incorrect key sk-secret"), "auth"),
    (fail(400, "Your input exceeds the context window of this model.", code="context_length_exceeded"), "overflow"),
    (fail(500, "Oops"), "server_error"),
    (fail(503, "Overloaded"), "overloaded"),
]


@pytest.mark.parametrize(("step", "kind"), FAILURES, ids=lambda each: str(each)[:60])
async def test_what_goes_wrong_is_told_by_its_kind(client: HttpClient, step: Step, kind: str) -> None:
    error = await failing(step, client)
    assert error.failure == kind
    assert "sk-secret" not in str(error)


async def test_how_long_to_wait_is_heard_wherever_it_is_said(client: HttpClient) -> None:
    assert (await failing(fail(429, "x", headers={"retry-after": "7"}), client)).retry_after == 7
    said = {"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."}
    assert (await failing(say("x", error=said), client)).retry_after == 1.5
    assert (await failing(fail(429, "x"), client)).retry_after is None


COMPLAINTS = {
    "reasoning": "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    "include": "Encrypted content is not supported with this model.",
    "summary": "Your organization must be verified to generate reasoning summaries.",
    "max_output_tokens": "Unsupported parameter: max_output_tokens",
    "prompt_cache_key": "prompt_cache_key: extra fields not permitted",
    "text": "Unsupported parameter: 'text.format' is not supported with this model.",
}


@pytest.mark.parametrize("option", COMPLAINTS)
async def test_an_option_that_is_minded_is_left_out_from_then_on(client: HttpClient, option: str) -> None:
    script = [fail(400, COMPLAINTS[option]), say("ok"), say("ok")]
    request = replace(HELLO, max_tokens=5, effort="low", schema={"type": "object"})
    async with ModelServer(script, dialects=("responses",)) as server:
        responses = provider(server.url, client)
        await chunks(responses, request)
        await chunks(responses, request)
    top = option != "summary"
    sent = [option in (asked.json if top else asked.json.get("reasoning", {})) for asked in server.requests]
    assert sent == [True, False, False]
    # For another model nothing is known yet.
    assert len(responses.body(replace(request, model="gpt-6"))) > len(responses.body(request))


async def test_the_key_goes_where_the_service_wants_it(client: HttpClient) -> None:
    async with ModelServer([say("a"), say("b")], dialects=("responses",)) as server:
        await chunks(provider(server.url, client, api_key="k"))
        await chunks(provider(server.url, client, api_key="k", key_header="api-key", headers={"X-A": "b"}))
    one, two = server.requests
    assert one.headers["authorization"] == "Bearer k"
    assert (two.headers["api-key"], two.headers["x-a"], two.headers.get("authorization")) == ("k", "b", None)


class Turnstile:
    """A login whose first token is stale."""

    last_token = ""

    def __init__(self) -> None:
        self.stale: list[str] = []

    async def get_token(self) -> str:
        return "new" if self.stale else "old"

    async def renew_token(self, stale: str) -> str:
        self.stale.append(stale)
        return "new"


async def test_a_login_is_renewed_once_when_its_token_is_not_taken(client: HttpClient) -> None:
    login = Turnstile()
    async with ModelServer(
        [fail(401, "expired"), say("ok"), fail(401, "x"), fail(401, "x")], dialects=("responses",)
    ) as server:
        responses = provider(server.url, client, login=login)
        await chunks(responses)
        with pytest.raises(ProviderError, match="does not accept the key"):
            await chunks(responses)
    assert [asked.headers["authorization"] for asked in server.requests[:2]] == ["Bearer old", "Bearer new"]
    assert len(server.requests) == 4
    assert login.stale == ["old", "new"]


async def test_a_server_that_knows_only_chat_is_spoken_to_in_chat(client: HttpClient) -> None:
    async with ModelServer([say("one"), say("two")], dialects=("chat",)) as server:
        responses = provider(server.url, client, is_official=False)
        for wanted in ("one", "two"):
            *_, reply = await chunks(responses)
            assert isinstance(reply, ModelReply)
            assert reply.text == wanted
    assert [asked.path for asked in server.requests] == ["/v1/chat/completions"] * 2
    assert b'"messages":' in responses.body(HELLO)


async def test_a_request_made_before_another_found_out_is_made_anew(client: HttpClient) -> None:
    async with ModelServer([say("one"), say("two")], dialects=("chat",)) as server:
        responses = provider(server.url, client, is_official=False)
        early = responses.body(HELLO)
        await chunks(responses)
        async with aclosing(responses.stream(HELLO, early)) as stream:
            *_, reply = [chunk async for chunk in stream]
    assert isinstance(reply, ModelReply)
    assert reply.text == "two"
    assert all("messages" in asked.json for asked in server.requests)


async def test_where_nothing_is_in_either_dialect_nothing_is_learnt(client: HttpClient) -> None:
    async with ModelServer(dialects=("ollama",)) as server:
        responses = provider(server.url, client, is_official=False)
        with pytest.raises(ProviderError) as caught:
            await chunks(responses)
    assert caught.value.failure == "not_found"
    assert b'"input":' in responses.body(HELLO)


@pytest.mark.parametrize("words", ["The model 'gpt-5' does not exist", "The API deployment does not exist"])
async def test_a_model_that_is_not_there_is_no_reason_to_speak_otherwise(client: HttpClient, words: str) -> None:
    async with ModelServer([fail(404, words)], dialects=("responses",)) as server:
        responses = provider(server.url, client, is_official=False)
        with pytest.raises(ProviderError) as caught:
            await chunks(responses)
    assert caught.value.failure == "not_found"
    assert b'"input":' in responses.body(HELLO)


async def test_openai_itself_is_not_taken_for_a_server_that_knows_only_chat(client: HttpClient) -> None:
    async with ModelServer([say("one")], dialects=("chat",), models=["gpt-5.1"]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.url, client))
    assert caught.value.failure == "not_found"
    assert "Did you mean test/gpt-5.1?" in caught.value.trouble.next
    assert server.requests == []


async def test_a_connection_is_used_again(client: HttpClient) -> None:
    async with ModelServer([say("one"), say("two")], dialects=("responses",)) as server:
        responses = provider(server.url, client)
        await chunks(responses)
        await chunks(responses)
    assert server.connections == 1


async def test_an_answer_that_never_ends_does_not_fill_the_memory(client: HttpClient) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    async with serving(saying(head + b"data: " + b"x" * (9 << 20))) as port:
        with pytest.raises(ProviderError, match="more than"):
            await chunks(provider(f"http://127.0.0.1:{port}/v1", client))


def test_a_request_of_many_items_is_made_from_what_was_made(client: HttpClient) -> None:
    responses = provider("http://x/v1", client)
    messages = tuple(Message("user", f"m{number}") for number in range(5))
    once = responses.body(replace(BLANK, messages=messages))
    again = responses.body(replace(BLANK, messages=(*messages, Message("assistant", "a"))))
    assert again.startswith(once.removesuffix(b"]}"))
    assert again == provider("http://x/v1", client).body(
        replace(BLANK, messages=(*messages, Message("assistant", "a")))
    )
    assert msgspec.json.decode(again)["input"][-1]["role"] == "assistant"
