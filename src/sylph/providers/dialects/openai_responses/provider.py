"""The OpenAI Responses dialect, over HTTP or over a WebSocket that stays open."""

import logging
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, KeepAlive, ModelInfo, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.dialects.openai_chat.messages import has_images
from sylph.providers.dialects.openai_chat.provider import (
    IMAGE_REFUSAL,
    IMAGE_REFUSAL_STATUS,
    IMAGES,
    OpenAIChatProvider,
)
from sylph.providers.dialects.openai_responses.input_items import ResponsesConversation
from sylph.providers.dialects.openai_responses.stream import ResponsesStream
from sylph.providers.dialects.openai_responses.websocket import ResponsesPrompt, ResponsesSockets, WebSocketUnavailable
from sylph.providers.dialects.strict_schema import answer_format
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.exchange import post_request
from sylph.providers.stream.reply_reader import read_chunks, suggest_models
from sylph.providers.vendor_errors import error_from_response, parse_complaint

# What a service may mind, and the words in its complaint that tell so. The first that fits is left out.
OPTIONAL = {
    "summary": b"summar",
    "include": b"ncrypted",
    "reasoning": b"reasoning",
    "max_output_tokens": b"max_output_tokens",
    "prompt_cache_key": b"prompt_cache_key",
    "text": b"text.format",
}
# Models from before there were thoughts to be had.
NO_REASONING_MODELS = r"^(ft:)?(gpt-[34]|chatgpt|davinci|babbage)"
# How a server says that it has no such door at all.
UNSUPPORTED_STATUS = (404, 405, 501)
ABOUT_MODEL = r"\bmodel|deployment"
# How a body of this dialect is known from one of the other, in its first bytes.
BODY_MARK, BODY_HEAD_SIZE = b'"stream":true,"store":false', 1000

logger = logging.getLogger(__name__)


class _ResponsesBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The input comes last: so the next request of a session begins with the same bytes."""

    model: str
    stream: bool | msgspec.UnsetType
    store: bool | msgspec.UnsetType = msgspec.UNSET
    include: list[str] | None = None
    prompt_cache_key: str | None = None
    reasoning: dict[str, str] | None = None
    text: dict[str, Any] | None = None
    max_output_tokens: int | None = None
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    instructions: str
    input: list[msgspec.Raw] | msgspec.UnsetType


class OpenAIResponsesProvider:
    """One endpoint that speaks this dialect. `refused` are options that it, or one of its models, minds.

    A server that is not OpenAI's own may know only Chat Completions: where there is nothing at `responses`, it is
    spoken to in that dialect from then on.
    """

    def __init__(self, endpoint: Endpoint, client: HttpClient, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = endpoint
        self._client = client
        self._refused = set(refused)
        self._tools: tuple[tuple[ToolSpec, ...], bool, msgspec.Raw] = ((), False, msgspec.Raw())
        self._items = ResponsesConversation(endpoint.name)
        self._chat = OpenAIChatProvider(endpoint, client)
        self._other = False
        self._sockets = ResponsesSockets(endpoint, client) if endpoint.websocket else None
        if "no_max_tokens" in endpoint.quirks:
            self._refused.add("max_output_tokens")

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        if self._other:
            return self._chat.body(request)
        return msgspec.json.encode(self._build_body(request))

    def _build_body(self, request: ModelRequest) -> _ResponsesBody:
        model = request.model
        return _ResponsesBody(
            model=model,
            stream=True,
            store=False,
            include=["reasoning.encrypted_content"] if self._accepts_reasoning_option("include", model) else None,
            prompt_cache_key=request.family or None if self._accepts_option("prompt_cache_key", model) else None,
            reasoning=self._reasoning_options(request) or None,
            text=_text_format(request.schema) if request.schema and self._accepts_option("text", model) else None,
            max_output_tokens=request.max_tokens if self._accepts_option("max_output_tokens", model) else None,
            tools=self._encode_tools(request.tools, search=request.search),
            instructions=request.system,
            input=[raw for made in self._encode_input(request) for raw in made],
        )

    def _encode_input(self, request: ModelRequest) -> list[list[msgspec.Raw]]:
        sees = self._accepts_option(IMAGES, request.model)
        return self._items.encode_items(request.model, request.messages, request.image, sees=sees)

    def _build_prompt(self, request: ModelRequest) -> ResponsesPrompt:
        """The request without what only HTTP needs."""
        head = replace(self._build_body(request), stream=msgspec.UNSET, input=msgspec.UNSET)
        # How long the answer may be is another matter each time, where a budget is kept.
        base = replace(head, max_output_tokens=None)
        return ResponsesPrompt(
            request, msgspec.json.encode(head), msgspec.json.encode(base), self._encode_input(request)
        )

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        if self._other:
            # It may have been made before another call found out what this server speaks.
            made = self._chat.body(request) if BODY_MARK in body[:BODY_HEAD_SIZE] else body
            async for chunk in self._chat.stream(request, made):
                yield chunk
            return
        told = False
        try:
            async for chunk in (
                self._sockets.stream_reply(self._build_prompt(request))
                if self._sockets
                else self._stream_http(request, body)
            ):
                told = told or not isinstance(chunk, KeepAlive)
                yield chunk
        except WebSocketUnavailable as error:
            logger.info("%s: no WebSocket (%s) The same over HTTP.", self.name, error)
        except ProviderError as error:
            minded = self._sockets is not None and error.failure == "bad_request" and not told
            if not minded or not self._learn_refusal(str(error).encode(), request):
                raise
            # It only minds an option, and HTTP is where that is settled.
            body = self.body(request)
        else:
            return
        async for chunk in self._stream_http(request, body):
            yield chunk

    async def _stream_http(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = ResponsesStream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open_stream(stack, request, body)
            if response is None:
                self._other = True
                try:
                    async for chunk in self._chat.stream(request, self._chat.body(request)):
                        yield chunk
                except ProviderError as error:
                    # Nothing is there in either dialect: so nothing was learnt.
                    self._other = error.failure != "not_found"
                    raise
                return
            async with aclosing(read_chunks(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def models(self) -> tuple[ModelInfo, ...]:
        return await self._chat.models()

    def info(self, model: str) -> ModelInfo:
        return self._chat.info(model)

    async def close(self) -> None:
        """The connections are the client's, those that stay open for a session are ours."""
        if self._sockets is not None:
            await self._sockets.close()

    async def _open_stream(self, stack: AsyncExitStack, request: ModelRequest, body: bytes) -> HttpResponse | None:
        """Sends the request; once more where the service only minds an option that it need not have.

        None where the server does not know this dialect.
        """
        response = await post_request(stack, self._client, self.endpoint, "responses", body)
        if response.status == 200:
            return response
        said = await response.read()
        if (
            response.status in UNSUPPORTED_STATUS
            and not self.endpoint.is_official
            and not parse_complaint(said).matches(ABOUT_MODEL)
        ):
            logger.info("%s at %s speaks Chat Completions, and no Responses", self.name, self.endpoint.base_url)
            return None
        learned = response.status in (400, 422) and self._learn_refusal(said, request)
        if learned or (response.status in IMAGE_REFUSAL_STATUS and self._learn_image_refusal(said, request)):
            return await self._open_stream(stack, request, self.body(request))
        error = error_from_response(
            self.endpoint, request.model, said, status=response.status, headers=response.headers
        )
        raise await suggest_models(self, request.model, error)

    def _learn_refusal(self, said: bytes, request: ModelRequest) -> bool:
        """Whether the complaint is about an option that was sent; it is not sent for this model again."""
        sent = {
            "summary": "summary" in self._reasoning_options(request),
            "include": self._accepts_reasoning_option("include", request.model),
            "reasoning": bool(self._reasoning_options(request)),
            "max_output_tokens": request.max_tokens is not None,
            "prompt_cache_key": bool(request.family),
            "text": request.schema is not None,
        }
        for option, words in OPTIONAL.items():
            if sent[option] and words in said and self._accepts_option(option, request.model):
                self._refused.add(f"{option} {request.model}")
                return True
        return False

    def _learn_image_refusal(self, said: bytes, request: ModelRequest) -> bool:
        if (
            not re.search(IMAGE_REFUSAL, said)
            or not self._accepts_option(IMAGES, request.model)
            or not has_images(request.messages)
        ):
            return False
        self._refused.add(f"{IMAGES} {request.model}")
        return True

    def _accepts_option(self, option: str, model: str) -> bool:
        return not self._refused & {option, f"{option} {model}"}

    def _accepts_reasoning_option(self, option: str, model: str) -> bool:
        """Whether an option goes to a model that is only for those that think."""
        return self._accepts_option(option, model) and not re.search(NO_REASONING_MODELS, model)

    def _reasoning_options(self, request: ModelRequest) -> dict[str, str]:
        if not self._accepts_reasoning_option("reasoning", request.model):
            return {}
        effort = {"effort": request.effort} if request.effort else {}
        return {**effort, "summary": "auto"} if self._accepts_option("summary", request.model) else effort

    def _encode_tools(self, tools: tuple[ToolSpec, ...], *, search: bool) -> msgspec.Raw | msgspec.UnsetType:
        """The tools' JSON, made once as long as the same tools come again."""
        if not tools and not search:
            return msgspec.UNSET
        if self._tools[0] is not tools or self._tools[1] is not search or not self._tools[2]:
            wire = [_encode_function(tool) for tool in tools] + ([{"type": "web_search"}] if search else [])
            self._tools = (tools, search, msgspec.Raw(msgspec.json.encode(wire)))
        return self._tools[2]


def _text_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"format": {"type": "json_schema", **answer_format(schema)}}


def _encode_function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": False,
    }
