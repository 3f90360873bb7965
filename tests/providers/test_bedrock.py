"""The Converse dialect of Amazon Bedrock, byte for byte."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, say
from tests.providers.test_dialects import chunks

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import ModelReply, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.bedrock.messages import CACHE_MARK, strip_cache_marks
from sylph.providers.dialects.bedrock.provider import BedrockProvider
from sylph.providers.endpoint import Endpoint

SONNET = "us.anthropic.claude-sonnet-4-6-v1:0"
READ = ToolSpec("read", "Reads.", {"type": "object"})
THOUGHT = '{"reasoningContent":{"reasoningText":{"text":"Let me see.","signature":"EqQB+/=="}}}'
CALLED = '{"toolUse":{"toolUseId":"tooluse_read_0","name":"read","input":{"path": "a"}}}'


def spoken(url: str = "http://x", client: HttpClient | None = None, **options: Any) -> BedrockProvider:
    given: dict[str, Any] = {"name": "bedrock", **options}
    return BedrockProvider(Endpoint(base_url=url, **given), client or HttpClient(), now=lambda: 1_440_938_160.0)


def ask(*messages: Message, model: str = SONNET, **more: Any) -> ModelRequest:
    return ModelRequest(model=model, system="Be kind.", messages=messages or (Message("user", "Hello"),), **more)


def body(request: ModelRequest) -> dict[str, Any]:
    return json.loads(spoken().body(request))


async def reply_to(client: HttpClient, step: Step, request: ModelRequest | None = None) -> ModelReply:
    async with ModelServer([step], dialects=["bedrock"]) as server:
        *_, reply = await chunks(spoken(server.root, client), request or ask(tools=(READ,)))
    assert isinstance(reply, ModelReply)
    return reply


def refused(status: int, kind: str, message: str) -> Step:
    headers = {"x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    return Step(status=status, body=json.dumps({"message": message}), headers=headers)


def test_what_goes_out_is_exactly_this() -> None:
    png, pdf = Image("d1", "image/jpeg", 3, "a.jpg"), Image("d2", "application/pdf", 3, "my/report_1.pdf")
    native = NativeItems(f"bedrock/{SONNET}", f"[{THOUGHT},{CALLED}]")
    messages = (
        Message("user", "<note/>"),
        Message("user", "Look", images=(png, pdf)),
        Message("assistant", "", (ToolCall("t1_c1", "read", '{"path": "a"}'),), native=native),
        Message("tool", "", call="t1_c1", images=(png,)),
        Message("assistant", "More.", (ToolCall("t1_c2", "read", "{oops"),)),
        Message("tool", "no", call="t1_c2"),
        Message("user", "Stop."),
    )
    mark = b',{"cachePoint":{"type":"default"}}'
    assert spoken().body(ask(*messages, tools=(READ,), max_tokens=99, image=str.encode)) == b"".join(
        [
            b'{"inferenceConfig":{"maxTokens":99},"toolConfig":{"tools":[{"toolSpec":{"name":"read","description":"Reads.",',
            b'"inputSchema":{"json":{"type":"object"}}}}',
            mark,
            b']},"system":[{"text":"Be kind."}',
            mark,
            b'],"messages":[{"role":"user","content":[{"text":"<note/>"},',
            b'{"image":{"format":"jpeg","source":{"bytes":"ZDE="}}},',
            b'{"document":{"format":"pdf","name":"my report 1 pdf d2","source":{"bytes":"ZDI="}}},{"text":"Look"}]},',
            b'{"role":"assistant","content":[',
            f"{THOUGHT},{CALLED}]}},".encode(),
            b'{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_read_0","content":[{"text":"(nothing)"},',
            b'{"image":{"format":"jpeg","source":{"bytes":"ZDE="}}}]}}',
            mark,
            b']},{"role":"assistant","content":[{"text":"More."},',
            b'{"toolUse":{"toolUseId":"t1_c2","name":"read","input":{"not_json":"{oops"}}}]},',
            b'{"role":"user","content":[{"toolResult":{"toolUseId":"t1_c2","content":[{"text":"no"}]}},{"text":"Stop."}',
            mark,
            b"]}]}",
        ]
    )


def test_there_are_four_marks_at_the_most_and_none_where_there_is_no_such_cache() -> None:
    talk: list[Message] = []
    before = b""
    for turn in range(4):
        talk += [Message("user", f"note {turn}"), Message("user", f"question {turn}")]
        made = spoken().body(ask(*talk, tools=(READ,)))
        assert made.count(CACHE_MARK) == (3 if not turn else 4)
        assert strip_cache_marks(made).startswith(strip_cache_marks(before).removesuffix(b"]}"))
        before = made
        talk.append(Message("assistant", f"answer {turn}"))
    assert CACHE_MARK not in spoken().body(ask(*talk, tools=(READ,), model="meta.llama3-3-70b-instruct-v1:0"))
    assert spoken().body(ask(*talk, tools=(READ,), model="us.amazon.nova-pro-v1:0")).count(CACHE_MARK) == 2


async def test_what_comes_in_is_understood_and_kept_as_it_was(client: HttpClient) -> None:
    usage = {"inputTokens": 12, "outputTokens": 89, "cacheReadInputTokens": 4000, "cacheWriteInputTokens": 300}
    step = Step(reasoning="Let me see.", encrypted="EqQB+/==", calls=(("read", {"path": "a"}),), usage=usage)
    assert await reply_to(client, step) == ModelReply(
        text="",
        finish="calls",
        reasoning="Let me see.",
        calls=(ToolCall("tooluse_read_0", "read", '{"path": "a"}'),),
        usage=Usage(input=4312, output=89, cached=4000, written=300),
        native=f"[{THOUGHT},{CALLED}]",
    )


async def test_thinking_that_nobody_signed_is_shown_and_not_sent_back(client: HttpClient) -> None:
    reply = await reply_to(client, say("42", reasoning="Hm."))
    assert (reply.reasoning, reply.native) == ("Hm.", "")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("guardrail_intervened", "filtered"),
        ("content_filtered", "filtered"),
    ],
)
async def test_the_reason_for_the_end_is_told(client: HttpClient, reason: str, finish: str) -> None:
    assert (await reply_to(client, say("x", finish=reason))).finish == finish


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (refused(429, "ThrottlingException", "Too many tokens, please wait before trying again."), "rate_limited"),
        (refused(400, "ValidationException", "Input is too long for requested model."), "overflow"),
        (refused(400, "ValidationException", "The provided model identifier is invalid."), "not_found"),
        (refused(400, "ValidationException", "Malformed input request"), "bad_request"),
        (
            refused(403, "AccessDeniedException", "You don't have access to the model with the specified model ID."),
            "auth",
        ),
        (refused(403, "ExpiredTokenException", "The security token included in the request is expired"), "auth"),
        (refused(404, "ResourceNotFoundException", "Could not resolve the foundation model"), "not_found"),
        (refused(408, "ModelTimeoutException", "Model timed out"), "timeout"),
        (refused(424, "ModelErrorException", "The model failed"), "server_error"),
        (refused(503, "ServiceUnavailableException", "Try again"), "overloaded"),
        (
            say("Hello", error={"type": "throttlingException", "message": "Too many tokens, please wait"}),
            "rate_limited",
        ),
        (say("Hello", error={"type": "validationException", "message": "Input is too long"}), "overflow"),
        (say("Hello", error={"type": "modelStreamErrorException", "message": "It broke"}), "server_error"),
        (say("Hello", error={"type": "somethingNewException", "message": "Service unavailable"}), "overloaded"),
        (say("Hello", finish="malformed_tool_use"), "format"),
    ],
)
async def test_trouble_has_a_kind(client: HttpClient, step: Step, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await reply_to(client, step)
    assert caught.value.failure == kind


async def test_requests_are_signed_for_their_region(client: HttpClient) -> None:
    key = "AKIAIOSFODNN7EXAMPLE:secret:token"
    async with ModelServer([say("x")], loop=True, dialects=["bedrock"]) as server:
        await chunks(spoken(server.root, client, api_key=key), ask())
        await chunks(spoken(server.root, client, api_key="ABSKbearer"), ask())
        signed, bearer = server.requests
    assert signed.path == "/model/us.anthropic.claude-sonnet-4-6-v1%3A0/converse-stream"
    login = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20150830/us-east-1/bedrock/aws4_request, "
    assert signed.headers["authorization"].startswith(login + "SignedHeaders=content-type;host;x-amz-date;")
    assert (signed.headers["x-amz-security-token"], "secret" in str(signed.headers)) == ("token", False)
    assert bearer.headers["authorization"] == "Bearer ABSKbearer"


class Turning:
    """A login whose first keys have expired."""

    def __init__(self, *keys: str) -> None:
        self._keys = list(keys)

    last_token = ""

    async def get_token(self) -> str:
        return self._keys[0]

    async def renew_token(self, stale: str) -> str:
        assert stale == self._keys[0]
        self._keys = self._keys[1:] or self._keys
        return self._keys[0]


async def test_keys_that_expired_are_asked_for_anew_once(client: HttpClient) -> None:
    expired = refused(403, "ExpiredTokenException", "The security token included in the request is expired")
    login = Turning("AKIAIOSFODNN7EXAMPLE:old:t", "AKIAIOSFODNN8EXAMPLE:new:t")
    async with ModelServer([expired, say("Yes."), expired], dialects=["bedrock"]) as server:
        spoken_with = spoken(server.root, client, login=login)
        assert isinstance((await chunks(spoken_with, ask()))[-1], ModelReply)
        assert ["NN8E" in asked.headers["authorization"] for asked in server.requests] == [False, True]
        with pytest.raises(ProviderError, match="does not accept the key"):
            await chunks(spoken_with, ask())
        assert len(server.requests) == 3


async def test_models_that_can_be_asked_are_listed_with_their_profiles(client: HttpClient) -> None:
    text = {"outputModalities": ["TEXT"], "inferenceTypesSupported": ["ON_DEMAND"]}
    listed = [
        {"modelId": "amazon.nova-pro-v1:0", **text},
        {"modelId": "amazon.titan-image", "outputModalities": ["IMAGE"]},
        {"modelId": "anthropic.claude-sonnet-4-6-v1:0", "inferenceTypesSupported": ["INFERENCE_PROFILE"]},
        {"inferenceProfileId": SONNET},
    ]
    async with ModelServer(models=listed, dialects=["bedrock"]) as server:
        found = await spoken(server.root, client).models()
    assert [info.name for info in found] == ["amazon.nova-pro-v1:0", SONNET]


def test_effort_and_form_are_told() -> None:
    adapt = {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}}
    made = body(ask(effort="high"))
    assert (made["additionalModelRequestFields"], made["inferenceConfig"]) == (adapt, {"maxTokens": 64_000})
    assert "additionalModelRequestFields" not in body(ask(effort="high", model="meta.llama3-3-70b"))
    old = ask(effort="low", model="anthropic.claude-sonnet-4-5-v1:0")
    assert body(old)["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    called = (
        Message("user", "x"),
        Message("assistant", "", (ToolCall("c", "read", "{}"),)),
        Message("tool", "y", call="c"),
    )
    assert "additionalModelRequestFields" not in body(replace(old, messages=called))
    form = body(ask(schema={"type": "object"}, tools=(READ,), effort="high"))
    assert form["toolConfig"]["toolChoice"] == {"tool": {"name": "answer"}}
    assert "additionalModelRequestFields" not in form


async def test_a_form_comes_back_as_text(client: HttpClient) -> None:
    reply = await reply_to(client, Step(calls=(("answer", {"n": 3}),)), ask(schema={"type": "object"}))
    assert (reply.text, reply.calls, reply.finish) == ('{"n": 3}', (), "stop")


async def test_a_model_without_a_cache_is_asked_without_marks_from_then_on(client: HttpClient) -> None:
    complaint = refused(
        403, "AccessDeniedException", "You invoked an unsupported model or did not allow prompt caching."
    )
    async with ModelServer([complaint, say("a"), say("b")], dialects=["bedrock"]) as server:
        told = spoken(server.root, client)
        for _ in range(2):
            await chunks(told, ask(tools=(READ,)))
        assert [CACHE_MARK in asked.body for asked in server.requests] == [True, False, False]
