"""Google's Gemini dialect, byte for byte."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.model_server import ModelServer, Step, calls, fail, garbage, say
from tests.net.servers import keeping, serving
from tests.providers.test_dialects import chunks

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import ModelReply, ModelRequest, ReasoningChunk, TextChunk, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.gemini.provider import GeminiProvider
from sylph.providers.endpoint import Endpoint

PRO, OLD = "gemini-3-pro", "gemini-2.5-flash"
READ = ToolSpec("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
NOW = ToolSpec("now", "Tells the time.", {"type": "object", "properties": {}, "additionalProperties": False})
FIRST = '{"functionCall": {"name": "read","args": {"path": "ä.txt"},"id": "fc1"},"thoughtSignature": "CiQBjz1rX+/=="}'
SECOND = '{"functionCall": {"name": "read","args": {"path": "b.txt"},"id": "fc2"}}'
RECORDED = (Path(__file__).parent / "wire" / "gemini.sse").read_text().replace("\n", "\r\n")


def spoken(url: str = "http://x", client: HttpClient | None = None, **options: Any) -> GeminiProvider:
    given: dict[str, Any] = {"name": "google", "key_header": "x-goog-api-key", **options}
    return GeminiProvider(Endpoint(base_url=url, **given), client or HttpClient())


def ask(*messages: Message, model: str = PRO, **more: Any) -> ModelRequest:
    return ModelRequest(model=model, system="Be kind.", messages=messages or (Message("user", "Hello"),), **more)


def body(request: ModelRequest) -> dict[str, Any]:
    return json.loads(spoken().body(request))


async def reply_to(client: HttpClient, step: Step, request: ModelRequest | None = None) -> ModelReply:
    async with ModelServer([step], dialects=["gemini"]) as server:
        *_, reply = await chunks(spoken(server.root, client), request or ask(tools=(READ,)))
    assert isinstance(reply, ModelReply)
    return reply


def talk(native: NativeItems | None) -> tuple[Message, ...]:
    two = (ToolCall("t1_c1", "read", '{"path": "ä.txt"}'), ToolCall("t1_c2", "list", '{"path": "b.txt"}'))
    png, pdf = Image("d1", "image/png", 3, "a.png"), Image("d2", "application/pdf", 3, "b.pdf")
    return (
        Message("user", "Look", images=(png, pdf)),
        Message("assistant", "Let me see.", two, native=native),
        Message("tool", "second", call="t1_c2"),
        Message("tool", "first", call="t1_c1", images=(png,)),
    )


HEAD = (
    b'{"systemInstruction":{"parts":[{"text":"Be kind."}]},"tools":[{"functionDeclarations":['
    b'{"name":"read","description":"Reads.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}},'
    b'{"name":"now","description":"Tells the time."}]}],"generationConfig":{"maxOutputTokens":99,'
    b'"thinkingConfig":{"includeThoughts":true}},"contents":[{"role":"user","parts":['
    b'{"inlineData":{"mimeType":"image/png","data":"ZDE="}},'
    b'{"inlineData":{"mimeType":"application/pdf","data":"ZDI="}},{"text":"Look"}]},'
)
SHOWN = b'{"inlineData":{"mimeType":"image/png","data":"ZDE="}}'


def test_what_goes_out_is_exactly_this() -> None:
    own = NativeItems("google/gemini-3-pro", '[{"text":"Let me see."},' + FIRST + "," + SECOND + "]")
    made = spoken().body(ask(*talk(own), tools=(READ, NOW), max_tokens=99, image=str.encode))
    assert made == HEAD + (
        b'{"role":"model","parts":[{"text":"Let me see."},' + FIRST.encode() + b"," + SECOND.encode() + b"]},"
        b'{"role":"user","parts":['
        b'{"functionResponse":{"name":"read","response":{"output":"first"},"id":"fc1","parts":[' + SHOWN + b"]}},"
        b'{"functionResponse":{"name":"list","response":{"output":"second"},"id":"fc2"}}]}]}'
    )


def test_what_another_model_said_goes_out_exactly_so() -> None:
    made = spoken().body(ask(*talk(None), tools=(READ, NOW), max_tokens=99, image=str.encode))
    assert made == HEAD + (
        b'{"role":"model","parts":[{"text":"Let me see."},'
        b'{"functionCall":{"name":"read","args":{"path": "\xc3\xa4.txt"}},'
        b'"thoughtSignature":"skip_thought_signature_validator"},'
        b'{"functionCall":{"name":"list","args":{"path": "b.txt"}}}]},'
        b'{"role":"user","parts":['
        b'{"functionResponse":{"name":"read","response":{"output":"first"},"parts":[' + SHOWN + b"]}},"
        b'{"functionResponse":{"name":"list","response":{"output":"second"}}}]}]}'
    )


def test_older_models_get_images_beside_results_and_no_signatures() -> None:
    contents = body(ask(*talk(None), model=OLD, image=str.encode))["contents"]
    assert "thoughtSignature" not in json.dumps(contents)
    assert [next(iter(part)) for part in contents[-1]["parts"]] == [
        "functionResponse",
        "functionResponse",
        "inlineData",
    ]


async def test_what_comes_in_is_understood_and_kept_as_it_was(client: HttpClient) -> None:
    async with ModelServer([garbage(RECORDED, "text/event-stream")], dialects=["gemini"]) as server:
        *before, reply = await chunks(spoken(server.root, client), ask(tools=(READ,)))
    assert [chunk for chunk in before if isinstance(chunk, ReasoningChunk)] == [ReasoningChunk("**Looking**\n")]
    assert [chunk for chunk in before if isinstance(chunk, TextChunk)] == [TextChunk("Let me "), TextChunk("see.")]
    assert reply == ModelReply(
        text="Let me see.",
        finish="calls",
        reasoning="**Looking**\n",
        calls=(ToolCall("fc1", "read", '{"path": "ä.txt"}'), ToolCall("fc2", "read", '{"path": "b.txt"}')),
        usage=Usage(input=4312, output=90, cached=4000, reasoning=50),
        native='[{"text":"Let me see."},' + FIRST + "," + SECOND + "]",
    )


async def test_escapes_that_nobody_needs_are_undone(client: HttpClient) -> None:
    """A secret must be found in what is kept, and it is not in `\\u003d`."""
    call = r'{"name":"read","args":{"path":"a\u003d\u003C\\u003d\\\u0026\n\u00e4"}}'
    part = '{"functionCall":' + call + ',"thoughtSignature":"c2ln"}'
    said = 'data: {"candidates":[{"content":{"parts":[' + part + ']},"finishReason":"STOP"}]}\n\n'
    reply = await reply_to(client, garbage(said, "text/event-stream"))
    assert reply.calls[0].arguments == r'{"path":"a=<\\u003d\\&\n\u00e4"}'
    assert json.loads(reply.native) == [json.loads(part)]


async def test_a_signature_after_the_words_is_kept_in_its_place(client: HttpClient) -> None:
    reply = await reply_to(client, say("It is so.", encrypted="c2ln"))
    assert json.loads(reply.native) == [{"text": "It is so."}, {"text": "", "thoughtSignature": "c2ln"}]
    assert reply.text == "It is so."


async def test_words_and_calls_alone_need_no_words_of_their_own(client: HttpClient) -> None:
    reply = await reply_to(client, calls(("read", {"path": "a"}), text="Look.", ids=False))
    assert (reply.native, reply.calls[0].id) == ("", "call_0")


async def test_what_the_service_searched_goes_back_to_it(client: HttpClient) -> None:
    request = ask(tools=(READ, ToolSpec("web_search", "Ours.", {"type": "object"})), search=True)
    made = body(request)
    assert made["tools"] == [
        {"functionDeclarations": [made["tools"][0]["functionDeclarations"][0]]},
        {"googleSearch": {}},
    ]
    assert made["toolConfig"] == {"includeServerSideToolInvocations": True}
    reply = await reply_to(client, say("Found.", searched=True), request)
    assert [next(iter(part)) for part in json.loads(reply.native)] == ["toolCall", "toolResponse", "text"]


def test_older_models_search_only_without_functions() -> None:
    assert "googleSearch" not in json.dumps(body(ask(model=OLD, tools=(READ,), search=True)))
    assert body(ask(model=OLD, search=True))["tools"] == [{"googleSearch": {}}]


def test_a_form_is_asked_for_and_older_models_get_no_functions_beside_it() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    made = body(ask(model=OLD, schema=schema, tools=(READ,)))
    assert made["generationConfig"]["responseMimeType"] == "application/json"
    assert made["generationConfig"]["responseSchema"] == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert "tools" not in made
    assert "tools" in body(ask(schema=schema, tools=(READ,)))


@pytest.mark.parametrize(
    ("model", "effort", "wanted"),
    [
        (PRO, "", {"includeThoughts": True}),
        (PRO, "none", {"includeThoughts": True, "thinkingLevel": "low"}),
        (PRO, "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-flash-latest", "none", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        (OLD, "none", {"includeThoughts": False, "thinkingBudget": 0}),
        (OLD, "high", {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.5-pro", "none", {"includeThoughts": True, "thinkingBudget": 128}),
        ("gemini-2.0-flash", "high", None),
        ("gemma-3-27b-it", "high", None),
    ],
)
def test_effort_is_told_in_the_words_of_the_model(model: str, effort: Any, wanted: Any) -> None:
    assert body(ask(model=model, effort=effort)).get("generationConfig", {}).get("thinkingConfig") == wanted


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filtered"),
        ("RECITATION", "filtered"),
        ("SPII", "filtered"),
    ],
)
async def test_the_reason_for_the_end_is_told(client: HttpClient, reason: str, finish: str) -> None:
    assert (await reply_to(client, say("x", finish=reason))).finish == finish


QUOTA = {
    "code": 429,
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "status": "RESOURCE_EXHAUSTED",
    "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
    ],
}
BLOCKED = 'data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}\n\n'


@pytest.mark.parametrize(
    ("step", "kind", "seconds"),
    [
        (Step(status=429, body=json.dumps({"error": QUOTA})), "rate_limited", 34.5),
        (Step(status=429, body=json.dumps([{"error": QUOTA}])), "rate_limited", 34.5),
        (say("Hello", error=QUOTA), "rate_limited", 34.5),
        (say("Hello", error={"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}), "overloaded", None),
        (fail(503, "The model is overloaded. Please try again later."), "overloaded", None),
        (fail(400, "API key not valid. Please pass a valid API key."), "auth", None),
        (fail(400, "The input token count (1200000) exceeds the maximum number of tokens allowed"), "overflow", None),
        (fail(404, "models/x is not found for API version v1beta"), "not_found", None),
        (garbage(BLOCKED, "text/event-stream"), "refusal", None),
        (say("Hello", finish="MALFORMED_FUNCTION_CALL"), "format", None),
        (garbage('data: {"candidates": 7}\n\n', "text/event-stream"), "format", None),
        (garbage('data: {"candidates":[{"content":{"parts":[7]}}]}\n\n', "text/event-stream"), "format", None),
    ],
)
async def test_trouble_has_a_kind(client: HttpClient, step: Step, kind: str, seconds: float | None) -> None:
    with pytest.raises(ProviderError) as caught:
        await reply_to(client, step)
    assert (caught.value.failure, caught.value.retry_after) == (kind, seconds)


async def test_a_server_that_does_not_stream_is_understood(client: HttpClient) -> None:
    reply = await reply_to(client, say("Hello", reasoning="Hm.", whole=True))
    assert (reply.text, reply.reasoning, reply.usage) == ("Hello", "Hm.", Usage(10, 5))


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("/v1beta", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        (
            "/v1/projects/p/locations/global/publishers/google",
            "/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
    ],
)
async def test_the_address_is_told_with_or_without_its_version(client: HttpClient, base: str, path: str) -> None:
    async with ModelServer([say("x")], dialects=["gemini"]) as server:
        await chunks(spoken(server.root + base, client), ask())
        assert server.requests[0].path == path


async def test_a_key_is_a_header_and_vertex_wants_a_token(client: HttpClient) -> None:
    vertex = "/v1/projects/my-project/locations/global/publishers/google"
    async with ModelServer([say("x")], loop=True, dialects=["gemini"]) as server:
        await chunks(spoken(server.root, client, api_key="AIza-1"), ask())
        await chunks(spoken(server.root, client, api_key="AIza-2", key_header=""), ask())
        await chunks(spoken(server.root + vertex, client, api_key="ya29.t", key_header=""), ask())
        google, other, cloud = server.requests
        assert [info.name for info in await spoken(server.root + vertex, client, key_header="").models()] == [
            "scripted"
        ]
        assert server.visits[0].path == "/v1beta1/publishers/google/models?pageSize=100"
        assert server.visits[0].headers["x-goog-user-project"] == "my-project"
    assert (google.headers["x-goog-api-key"], other.headers["x-goog-api-key"]) == ("AIza-1", "AIza-2")
    assert (cloud.headers["authorization"], "x-goog-user-project" in cloud.headers) == ("Bearer ya29.t", False)
    assert "AIza" not in google.path


def test_the_place_that_is_everywhere_has_no_name_in_its_address() -> None:
    url = "https://global-aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"
    assert spoken(url).endpoint.base_url.startswith("https://aiplatform.googleapis.com/v1/projects/p/")


def page(said: dict[str, Any]) -> bytes:
    text = json.dumps(said).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)


async def test_the_list_of_models_has_pages_and_limits(client: HttpClient) -> None:
    chat = {"supportedGenerationMethods": ["generateContent"], "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}
    embed = {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]}
    first = page({"models": [{"name": f"models/{PRO}", **chat}, embed], "nextPageToken": "a/b"})
    async with serving(keeping(first, page({"models": [{"name": "models/newest"}]}))) as port:
        found = await spoken(f"http://127.0.0.1:{port}", client).models()
    assert [(info.name, info.window, info.output) for info in found] == [
        (PRO, 1_048_576, 65_536),
        ("newest", None, None),
    ]


@pytest.mark.parametrize(
    ("complaint", "more", "gone"),
    [
        ("Thinking is not enabled for this model", {"effort": "high"}, "thinkingConfig"),
        ("Search Grounding is not supported.", {"search": True}, "googleSearch"),
    ],
)
async def test_what_a_server_minds_it_is_not_sent_again(
    client: HttpClient, complaint: str, more: dict[str, Any], gone: str
) -> None:
    async with ModelServer([fail(400, complaint), say("a"), say("b")], dialects=["gemini"]) as server:
        told = spoken(server.root, client)
        for _ in range(2):
            await chunks(told, ask(**more))
        assert [gone in asked.body.decode() for asked in server.requests] == [True, False, False]
