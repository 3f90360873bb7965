"""The Anthropic Messages dialect, as spoken by Anthropic and by the services that offer its address too."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sylph.core.provider import Chunk, ModelInfo, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.dialects.anthropic.messages import CACHE_MARK, AnthropicConversation
from sylph.providers.dialects.anthropic.reply import PAUSED, AnthropicEvent, AnthropicReply
from sylph.providers.dialects.attachments import IMAGE_REFUSAL, IMAGE_REFUSAL_STATUS, has_images
from sylph.providers.dialects.json_schema import to_strict_schema
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.exchange import STREAM_HEADERS, fetch_document, post_request
from sylph.providers.stream.reply_reader import read_chunks, suggest_models
from sylph.providers.stream.response_body import BodyDecoder
from sylph.providers.vendor_errors import error_from_response, no_list_error
from sylph.providers.vendors import claude_models

VERSION = "2023-06-01"
KEY_HEADER = "x-api-key"
INTERLEAVED = "interleaved-thinking-2025-05-14"
SEARCH_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
ANSWER_TOOL = "answer"
PAGE, PAGES = 1_000, 20
# A service may pause a long search; so often it is told to go on.
MAX_PAUSES = 10
IMAGES = "images"
# What a server may refuse: the words in its complaint that tell so, and the bytes that show that it was sent.
OPTIONAL: Mapping[str, tuple[bytes, bytes]] = {
    "cache_control": (rb"cache_control", CACHE_MARK),
    "native": (rb"signature|thinking.{0,80}(cannot be modified|must remain)|Expected .thinking", b'"signature"'),
    "thinking": (rb"thinking|effort|adaptive", b'"thinking":{"type":"'),
    "format": (rb"output_config|output_format|schema", b'"format":{"type":"json_schema"'),
    "search": (rb"web_search|server tool", b'"type":"web_search_'),
}
TOO_MANY_TOKENS = rb"max_tokens: \d+ > (\d+)"


class _MessagesBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The messages come last: so the next request of a session begins with the same bytes."""

    model: str
    max_tokens: int
    stream: bool
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    tool_choice: dict[str, Any] | None = None
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    system: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: list[msgspec.Raw]


class _Meta(msgspec.Struct):
    n_ctx: int | None = None


class _Model(msgspec.Struct):
    id: str = ""
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    context_length: int | None = None
    meta: _Meta | None = None

    @property
    def window(self) -> int | None:
        return self.max_input_tokens or self.context_length or (self.meta.n_ctx if self.meta else None)


class _Models(msgspec.Struct):
    data: list[_Model] | None
    has_more: bool | None = None
    last_id: str | None = None


MODELS = msgspec.json.Decoder(_Models, strict=False)
PACKET = msgspec.json.Decoder(AnthropicEvent, strict=False)


class _MessageStream:
    """One body of an answer, which may have more than one."""

    def __init__(self, endpoint: Endpoint, model: str, reply: AnthropicReply) -> None:
        self._endpoint, self._model, self._reply = endpoint, model, reply
        self._body = BodyDecoder(endpoint, model, "an Anthropic message", self._read_packet)
        self.feed = self._body.feed

    @property
    def done(self) -> bool:
        return self._reply.ended

    @property
    def complete(self) -> bool:
        return self._reply.ended or bool(self._reply.stop)

    def close(self) -> list[Chunk]:
        chunks = self._body.close()
        if not self.complete:
            raise self._body.truncation_error(begun=self._reply.begun)
        return chunks

    def _read_packet(self, data: bytes) -> list[Chunk]:
        try:
            packet = PACKET.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._body.format_error(data) from None
        if packet.type == "error" or packet.error:
            raise error_from_response(self._endpoint, self._model, data)
        return self._reply.take_event(packet)


class AnthropicProvider:
    """One endpoint that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(self, endpoint: Endpoint, client: HttpClient, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = _prepare_endpoint(endpoint)
        self._client = client
        self._refused = set(refused)
        self._outputs: dict[str, int] = {}
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bool, msgspec.Raw] = ((), False, msgspec.Raw())
        self._conversation = AnthropicConversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        return msgspec.json.encode(self._build_body(request))

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        reply = AnthropicReply(answer=ANSWER_TOOL if self._needs_answer_tool(request) else "")
        for _ in range(MAX_PAUSES):
            async with aclosing(self._stream_message(request, body, reply)) as heard:
                async for chunk in heard:
                    yield chunk
            if reply.stop != PAUSED:
                break
            body = self._continuation_body(request, reply)
            reply.resume()
        yield reply.build_reply()

    async def models(self) -> tuple[ModelInfo, ...]:
        found: dict[str, ModelInfo] = {}
        after = ""
        for _ in range(PAGES):
            page = await self._fetch_page(after)
            for model in page.data or ():
                found[model.id] = ModelInfo(name=model.id, window=model.window)
            if not page.has_more or not page.last_id or page.last_id == after:
                break
            after = page.last_id
        self._learned = {name: info for name, info in found.items() if name}
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        """`output` is what a request asks for: it must say how much, and the same every time."""
        known = self.endpoint.model_info(model, self._learned.get(model))
        return replace(known, output=self._output_limit(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    def _output_limit(self, model: str) -> int:
        """Never what the service's list says: a body must not depend on whether somebody has looked at that."""
        return (
            self._outputs.get(model) or self.endpoint.model_info(model).output or claude_models.max_output_tokens(model)
        )

    def _build_body(self, request: ModelRequest) -> _MessagesBody:
        limit = request.max_tokens or self._output_limit(request.model)
        marks, native = "cache_control" not in self._refused, "native" not in self._refused
        body = _MessagesBody(
            model=request.model,
            max_tokens=limit,
            stream=True,
            system=_encode_system(request.system, marks=marks),
            messages=self._conversation.encode_messages(
                request, sees=self._accepts_images(request.model), marks=marks, native=native
            ),
        )
        search = request.search and "search" not in self._refused
        if request.tools or search:
            body.tools = self._encode_tools(request.tools, search=search, marks=marks)
        if self._needs_answer_tool(request):
            body.tools = _encode_answer_tool(request.schema or {}, marks=marks)
            body.tool_choice = {"type": "tool", "name": ANSWER_TOOL}
            return body
        asked = (
            claude_models.thinking_options(request.model, request.effort, limit)
            if "thinking" not in self._refused
            else {}
        )
        thinking: dict[str, Any] | None = asked.get("thinking")
        if thinking and (
            thinking["type"] != "enabled" or self._conversation.starts_with_thinking(request, native=native)
        ):
            body.thinking = thinking
        body.output_config = asked.get("output_config")
        if request.schema is not None:
            form = {"type": "json_schema", "schema": to_strict_schema(request.schema)}
            body.output_config = {**(body.output_config or {}), "format": form}
        return body

    def _needs_answer_tool(self, request: ModelRequest) -> bool:
        """Whether the answer's form is had by a tool that must be called."""
        return request.schema is not None and (
            "format" in self._refused or not claude_models.supports_json_schema(request.model)
        )

    def _continuation_body(self, request: ModelRequest, reply: AnthropicReply) -> bytes:
        """The same question with what was answered so far: the service goes on from there."""
        body = self._build_body(request)
        said = b'{"role":"assistant","content":[%b]}' % b",".join(reply.native_blocks())
        body.messages.append(msgspec.Raw(said))
        return msgspec.json.encode(body)

    async def _stream_message(
        self, request: ModelRequest, body: bytes, reply: AnthropicReply
    ) -> AsyncGenerator[Chunk, None]:
        stream = _MessageStream(self.endpoint, request.model, reply)
        async with AsyncExitStack() as stack:
            response = await self._open_stream(stack, request, body)
            async with aclosing(read_chunks(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def _open_stream(self, stack: AsyncExitStack, request: ModelRequest, body: bytes) -> HttpResponse:
        """Sends the request; once more where the server only minds an option that it need not have."""
        # Older models think between calls only when they are asked to.
        beta = {"anthropic-beta": INTERLEAVED} if b'"thinking":{"type":"enabled"' in body[:400] else {}
        response = await post_request(
            stack, self._client, self.endpoint, self._api_path("messages"), body, {**STREAM_HEADERS, **beta}
        )
        if response.status == 200:
            return response
        said = await response.read()
        learned = response.status in (400, 422) and self._learn_refusal(said, request, body)
        if learned or (response.status in IMAGE_REFUSAL_STATUS and self._learn_image_refusal(said, request)):
            return await self._open_stream(stack, request, self.body(request))
        raise await suggest_models(
            self,
            request.model,
            error_from_response(self.endpoint, request.model, said, status=response.status, headers=response.headers),
        )

    def _learn_refusal(self, said: bytes, request: ModelRequest, body: bytes) -> bool:
        """Whether the complaint is about an option that was sent; it is not sent to this endpoint again."""
        found = re.search(TOO_MANY_TOKENS, said)
        if found and not request.max_tokens and int(found[1]) < self._output_limit(request.model):
            self._outputs[request.model] = int(found[1])
            return True
        for option, (words, sent) in OPTIONAL.items():
            if option not in self._refused and sent in body and re.search(words, said):
                self._refused.add(option)
                return True
        return False

    def _learn_image_refusal(self, said: bytes, request: ModelRequest) -> bool:
        """Whether the complaint is about images that were sent; this model is told in words from now on."""
        if (
            not re.search(IMAGE_REFUSAL, said)
            or not self._accepts_images(request.model)
            or not has_images(request.messages)
        ):
            return False
        self._refused.add(f"{IMAGES} {request.model}")
        return True

    def _accepts_images(self, model: str) -> bool:
        """Whether it is shown images: unless it is known to mind."""
        return not self._refused & {IMAGES, f"{IMAGES} {model}"}

    def _encode_tools(self, tools: tuple[ToolSpec, ...], *, search: bool, marks: bool) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools or self._tools[1] != search or marks != (CACHE_MARK in bytes(self._tools[2])):
            # The service's own search takes the place of one of the same name.
            own = [_encode_tool(tool) for tool in tools if not search or tool.name != SEARCH_TOOL["name"]]
            self._tools = (tools, search, _encode_cacheable([*own, *([SEARCH_TOOL] if search else [])], marks=marks))
        return self._tools[2]

    async def _fetch_page(self, after: str) -> _Models:
        more = f"&after_id={quote(after, safe='')}" if after else ""
        said = await fetch_document(self._client, self.endpoint, self._api_path(f"models?limit={PAGE}{more}"))
        try:
            return MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list_error(self.endpoint, said) from None

    def _api_path(self, path: str) -> str:
        """The address is told with or without its version, as the vendor's own programs take it."""
        return path if self.endpoint.base_url.rstrip("/").endswith("/v1") else f"v1/{path}"


def _prepare_endpoint(endpoint: Endpoint) -> Endpoint:
    """The endpoint with the headers of this dialect, whatever the table says of it."""
    headers = {"anthropic-version": VERSION, **endpoint.headers}
    if endpoint.login is not None:
        return replace(endpoint, headers=headers)
    if (key := endpoint.api_key.strip()) and not (endpoint.is_official and endpoint.key_header == KEY_HEADER):
        # Others that speak this dialect want the key where most services want it.
        headers = {"Authorization": f"Bearer {key}", **headers}
    return replace(endpoint, headers=headers, key_header=KEY_HEADER)


def _encode_system(text: str, *, marks: bool) -> msgspec.Raw | msgspec.UnsetType:
    return _encode_cacheable([{"type": "text", "text": text}], marks=marks) if text else msgspec.UNSET


def _encode_answer_tool(schema: dict[str, Any], *, marks: bool) -> msgspec.Raw:
    """The one tool of a question whose answer must have a form."""
    return _encode_cacheable([_encode_tool(ToolSpec(ANSWER_TOOL, "Gives the answer.", schema))], marks=marks)


def _encode_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _encode_cacheable(items: list[dict[str, Any]], *, marks: bool) -> msgspec.Raw:
    made = msgspec.json.encode(items)
    return msgspec.Raw(made.removesuffix(b"}]") + CACHE_MARK + b"}]" if marks and items else made)
