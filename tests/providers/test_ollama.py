"""Ollama's own dialect: the exact bytes that go out, and what comes of those that come in."""

import json
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, assert_extends, begin, call, calls, fail, garbage, say

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import (
    ArgumentsChunk,
    Chunk,
    KeepAlive,
    LearningProvider,
    ModelInfo,
    ModelReply,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolSpec,
)
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.ollama.provider import LARGEST_WINDOW, OllamaProvider
from sylph.providers.dialects.ollama.stream import OllamaStream
from sylph.providers.discover import DiscoverySettings, find_models
from sylph.providers.endpoint import Endpoint

TOOLS = (ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
HELLO = ModelRequest(model="qwen3", system="Be kind.", messages=(Message("user", "Hello"),), tools=TOOLS)
BLANK = ModelRequest(model="qwen3", system="s", messages=())
UNICODE = "Grüße, 世界, 🙂 and more of it"


def serving(script: Any = (), **how: Any) -> ModelServer:
    return ModelServer(script, dialects=("ollama",), **how)


def provider(url: str, client: HttpClient, **options: Any) -> OllamaProvider:
    return OllamaProvider(Endpoint(name="ollama", base_url=url, local=True, **options), client)


async def chunks(ollama: OllamaProvider, request: ModelRequest = HELLO) -> list[Chunk]:
    async with aclosing(ollama.stream(request, ollama.body(request))) as stream:
        return [chunk async for chunk in stream]


async def answer(step: Step, client: HttpClient) -> tuple[list[Chunk], ModelReply]:
    async with serving([step]) as server:
        *before, reply = await chunks(provider(server.root, client))
    assert isinstance(reply, ModelReply)
    return [chunk for chunk in before if chunk != KeepAlive()], reply


async def failing(step: Step, client: HttpClient) -> ProviderError:
    async with serving([step]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.root, client))
    return caught.value


def test_the_exact_bytes_of_a_request(client: HttpClient) -> None:
    request = replace(HELLO, window=8192, max_tokens=9, effort="none", schema={"type": "object"})
    assert provider("http://x", client).body(request) == (
        b'{"model":"qwen3","stream":true,"truncate":false,"think":false,"format":{"type":"object"},'
        b'"options":{"num_ctx":8192,"num_predict":9},'
        b'"tools":[{"type":"function","function":{"name":"read","description":"Reads a file.",'
        b'"parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],'
        b'"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hello"}]}'
    )


def test_a_whole_conversation(client: HttpClient) -> None:
    pixels = Image("p", "image/png", name="a.png")
    paper = Image("d", "application/pdf", name="b.pdf")
    thought = NativeItems("ollama/qwen3", '{"thinking":"hm"}')
    request = replace(
        BLANK,
        messages=(
            Message("user", "see", images=(pixels, paper)),
            Message("assistant", "", (ToolCall("1", "read", '{"path": "a"}'),), native=thought),
            Message("tool", "text", call="1"),
            Message("assistant", "", (ToolCall("2", "read", "[oops"),), native=NativeItems("ollama/other", "{}")),
            Message("tool", "wrong", call="2"),
        ),
        image={"p": b"pixels"}.get,
    )
    _, *said = json.loads(provider("http://x", client).body(request))["messages"]
    unseen = "see\n[b.pdf: not shown, this model takes no images]"
    assert said == [
        {"role": "user", "content": unseen, "images": ["cGl4ZWxz"]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}],
        },
        {"role": "tool", "content": "text", "tool_name": "read"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "read", "arguments": {"not_json": "[oops"}}}],
        },
        {"role": "tool", "content": "wrong", "tool_name": "read"},
    ]


@pytest.mark.parametrize("items", ["[]", '[{"type":"reasoning"}]', "nonsense"])
def test_words_of_another_dialect_do_not_exist(client: HttpClient, items: str) -> None:
    said = Message("assistant", "I see", native=NativeItems("ollama/qwen3", items))
    body = json.loads(provider("http://x", client).body(replace(BLANK, messages=(said,))))
    assert body["messages"][1] == {"role": "assistant", "content": "I see"}


RECORDED = (
    b'{"model":"qwen3","created_at":"2026-01-01T00:00:00.1Z","message":{"role":"assistant","content":"",'
    b'"thinking":"Okay"},"done":false}\n'
    b'{"model":"qwen3","created_at":"2026-01-01T00:00:00.2Z","message":{"role":"assistant","content":"",'
    b'"thinking":", \xc3\xbcber"},"done":false}\n'
    b'{"model":"qwen3","created_at":"2026-01-01T00:00:00.3Z","message":{"role":"assistant","content":"I look"},'
    b'"done":false}\n'
    b'{"model":"qwen3","created_at":"2026-01-01T00:00:00.4Z","message":{"role":"assistant","content":"",'
    b'"tool_calls":[{"id":"call_x","function":{"index":0,"name":"read","arguments":{"path": "a"}}}]},"done":false}\n'
    b'{"model":"qwen3","created_at":"2026-01-01T00:00:00.5Z","message":{"role":"assistant","content":""},'
    b'"done":true,"done_reason":"stop","total_duration":5,"load_duration":1,"prompt_eval_count":26,'
    b'"prompt_eval_duration":1,"eval_count":30,"eval_duration":2}\n'
)


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_a_recorded_answer_wherever_it_is_cut(size: int) -> None:
    stream = OllamaStream(Endpoint(name="ollama", base_url="http://x"), "qwen3")
    told = [each for at in range(0, len(RECORDED), size) for each in stream.feed(RECORDED[at : at + size])]
    assert [each for each in told if each != KeepAlive()] == [
        ReasoningChunk("Okay"),
        ReasoningChunk(", über"),
        TextChunk("I look"),
        ArgumentsChunk(0, "read", '{"path": "a"}'),
    ]
    assert stream.close() == [
        ModelReply(
            text="I look",
            finish="calls",
            reasoning="Okay, über",
            calls=(ToolCall("call_x", "read", '{"path": "a"}'),),
            usage=Usage(input=26, output=30),
            native='{"thinking":"Okay, über"}',
        )
    ]


ODDITIES = [
    say(UNICODE, chunk=3),
    say(UNICODE, split=1),
    say(UNICODE, split=5, chunk=100),
    say(UNICODE, empties=2),
    say(UNICODE, keepalives=3, delay=0.001),
    say(UNICODE, whole=True),
]


@pytest.mark.parametrize("step", ODDITIES, ids=str)
async def test_the_same_words_however_they_come(client: HttpClient, step: Step) -> None:
    before, reply = await answer(step, client)
    assert "".join(chunk.text for chunk in before if isinstance(chunk, TextChunk)) in (UNICODE, "")
    assert (reply.text, reply.usage, reply.finish) == (UNICODE, Usage(input=10, output=5), "stop")


async def test_parallel_calls(client: HttpClient) -> None:
    before, reply = await answer(calls(("read", {"path": "ä"}), ("list", {}), split=4), client)
    assert [each.index for each in before if isinstance(each, ArgumentsChunk)] == [0, 1]
    assert [(each.id, each.name, json.loads(each.arguments)) for each in reply.calls] == [
        ("call_0", "read", {"path": "ä"}),
        ("call_1", "list", {}),
    ]
    assert reply.finish == "calls"


async def test_an_answer_at_its_limit(client: HttpClient) -> None:
    assert (await answer(say("Some", finish="length"), client))[1].finish == "length"


OVERFLOW = '{"error":"the input length exceeds the context length"}'
FAILURES = [
    (say("abc" * 20, error={"error": "an error was encountered while running the model"}), "server_error"),
    (say("x", error={"error": "model runner has unexpectedly stopped, unavailable"}), "overloaded"),
    (say("x", done=False), "cut"),
    (say("xy" * 99, drop=True, at="stream"), "cut"),
    (say("", loading=True), "overloaded"),
    (garbage("<html>"), "format"),
    (garbage("{}\n"), "format"),
    (garbage(""), "format"),
    (garbage("[1]"), "format"),
    (Step(status=400, body=OVERFLOW), "overflow"),
    (Step(status=500, body='{"error":"llama runner process has terminated"}'), "server_error"),
    (
        Step(status=503, body='{"error":"server busy, please try again. maximum pending requests exceeded"}'),
        "overloaded",
    ),
    (Step(status=429, body='{"error":"slow"}', headers={"retry-after": "3"}), "rate_limited"),
    (Step(status=401, body='{"error":"unauthorized"}'), "auth"),
    (fail(404, "model 'qwen3' not found"), "not_found"),
]


@pytest.mark.parametrize(("step", "kind"), FAILURES, ids=lambda each: str(each)[:60])
async def test_what_goes_wrong_is_told_by_its_kind(client: HttpClient, step: Step, kind: str) -> None:
    error = await failing(step, client)
    assert error.failure == kind


async def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    stream = OllamaStream(Endpoint(name="ollama", base_url="http://x"), "qwen3")
    with pytest.raises(ProviderError, match="a line of more than"):
        for _ in range(100):
            stream.feed(b"x" * 100_000)


SHOW = {
    "capabilities": ["completion", "tools", "vision"],
    "parameters": 'temperature 0.6\nstop "<|im_end|>"',
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 262144, "qwen3.block_count": 36},
}


async def test_models_are_listed_with_what_they_hold_and_can_do(client: HttpClient) -> None:
    async with serving(models=[{"model": "qwen3", "show": SHOW}, "nomic-embed-text"]) as server:
        one, other = await provider(server.root, client).models()
    assert one == ModelInfo(
        name="qwen3", window=LARGEST_WINDOW, price_in=0, price_out=0, price_cached=0, sees=True, calls=True
    )
    assert other.name == "nomic-embed-text"


@pytest.mark.parametrize(
    ("show", "model", "window"),
    [
        ({**SHOW, "parameters": "num_ctx                        16384\ntop_k 20"}, "m", 16384),
        ({**SHOW, "model_info": {"llama.context_length": 8192}}, "m", 8192),
        (SHOW, "gpt-oss:120b-cloud", 262144),
        ({"model_info": {}}, "m", None),
        ({"model_info": {"x.context_length": "many"}}, "m", None),
    ],
)
async def test_the_window_is_what_was_set_or_can_be_expected(
    client: HttpClient, show: dict[str, Any], model: str, window: int | None
) -> None:
    async with serving(models=[{"model": model, "show": show}]) as server:
        ollama = provider(server.root, client)
        assert isinstance(ollama, LearningProvider)
        await ollama.learn(model)
        await ollama.learn(model)
    assert ollama.info(model).window == window
    assert len(server.visits) == 1


async def test_what_is_configured_of_a_model_is_not_asked(client: HttpClient) -> None:
    async with serving() as server:
        ollama = provider(server.root, client, models={"m": ModelInfo(name="m", window=9)})
        await ollama.learn("m")
    assert server.visits == []
    assert ollama.info("m").window == 9


async def test_a_server_that_tells_nothing_of_a_model_is_no_failure(client: HttpClient) -> None:
    ollama = provider("http://127.0.0.1:9", client)
    await ollama.learn("m")
    assert ollama.info("m").window is None


async def test_it_is_found_on_this_machine(client: HttpClient) -> None:
    async with serving(models=["qwen3:8b"]) as server:
        (found,) = await find_models(DiscoverySettings(local_urls={"ollama": server.root}), client)
    assert (found.provider.name, found.provider.dialect, found.model) == ("ollama", "ollama", "qwen3:8b")


async def test_a_model_that_is_not_there_is_answered_with_those_that_are(client: HttpClient) -> None:
    async with serving([fail(404, "model 'qwen2' not found")], models=["qwen3:8b", "llama3"]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.root, client), replace(HELLO, model="qwen2"))
    assert caught.value.trouble.next[:2] == ("Did you mean ollama/qwen3:8b?", "or get it: ollama pull qwen2")


async def test_a_model_without_tools_is_answered_with_those_that_have_them(client: HttpClient) -> None:
    step = Step(status=400, body='{"error":"registry.ollama.ai/library/gemma does not support tools"}')
    async with serving([step], models=[{"model": "qwen3", "show": SHOW}]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.root, client))
    assert caught.value.failure == "bad_request"
    assert caught.value.trouble.next == ("choose one that can: -m ollama/qwen3",)


async def test_what_a_model_minds_is_left_out_from_then_on(client: HttpClient) -> None:
    script = [
        Step(status=400, body='{"error":"\\"qwen3\\" does not support thinking"}'),
        Step(status=500, body='{"error":"this model is missing data required for image input"}'),
        say("ok"),
    ]
    picture = Image("p", "image/png", name="a.png")
    request = replace(
        HELLO, effort="high", messages=(Message("user", "see", images=(picture,)),), image={"p": b"x"}.get
    )
    async with serving(script) as server:
        *_, reply = await chunks(provider(server.root, client), request)
    assert isinstance(reply, ModelReply)
    assert [b'"think":true' in asked.body for asked in server.requests] == [True, False, False]
    assert [b'"images"' in asked.body for asked in server.requests] == [True, True, False]


def test_how_much_to_think_is_only_said_to_those_who_understand(client: HttpClient) -> None:
    ollama = provider("http://x", client)
    said = [json.loads(ollama.body(replace(BLANK, model=model, effort="low"))) for model in ("qwen3", "gpt-oss:20b")]
    assert [each["think"] for each in said] == [True, "low"]
    assert "think" not in json.loads(ollama.body(BLANK))


async def test_consecutive_requests_begin_with_the_same_bytes(client: HttpClient) -> None:
    messages = HELLO.messages
    async with serving([call("read", path="a", how={"reasoning": "hm"}), say("Done"), say("Again")]) as server:
        ollama = provider(server.root, client)
        for _ in range(3):
            *_, reply = await chunks(ollama, replace(HELLO, messages=messages))
            assert isinstance(reply, ModelReply)
            native = NativeItems("ollama/qwen3", reply.native) if reply.native else None
            messages += (Message("assistant", reply.text, reply.calls, native=native), Message("user", "more"))
    assert_extends(server.requests)
    assert b'"thinking":"hm"' in server.requests[1].body


async def test_an_answer_can_be_given_up_on(client: HttpClient) -> None:
    async with serving([begin("word " * 200)]) as server:
        ollama = provider(server.root, client)
        async with aclosing(ollama.stream(HELLO, ollama.body(HELLO))) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextChunk):
                    break
        await server.until(lambda: server.broken == 1)
