"""Google's Gemini dialect, as spoken by the Gemini API and, under another address, by Vertex."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sylph.core.provider import Chunk, Effort, ModelInfo, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.dialects.attachments import IMAGE_REFUSAL
from sylph.providers.dialects.gemini.messages import GeminiConversation, gemini_version, requires_signatures
from sylph.providers.dialects.gemini.reply import GeminiPacket, GeminiReply
from sylph.providers.dialects.json_schema import to_gemini_schema
from sylph.providers.dialects.refused_options import RefusedOptions
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.exchange import fetch_document, post_request
from sylph.providers.stream.reply_reader import read_chunks, suggest_models
from sylph.providers.stream.response_body import BodyDecoder
from sylph.providers.vendor_errors import error_from_response, no_list_error

KEY_HEADER = "x-goog-api-key"
PAGE, VERTEX_PAGE, PAGES = 1_000, 100, 20
BUDGETS: Mapping[str, int] = {"low": 1_024, "medium": 8_192, "high": 24_576}
MIN_BUDGET = 128
THINKING = (2, 5)
IMAGES = "images"
WEB_SEARCH = "web_search"
VERSIONED = r"/v\d\w*(/|$)"
PROJECT = r"/projects/([^/]+)/locations/[^/]+"
# What a server may refuse: the words in its complaint that tell so, and the bytes that show that it was sent.
OPTIONAL: Mapping[str, tuple[bytes, bytes]] = {
    "native": (rb"(?i)thought.?signature", b'"thoughtSignature"'),
    "thinking": (rb"(?i)thinking|thoughts", b'"thinkingConfig"'),
    "search": (rb"(?i)search|built-?in tool|tool type", b'"googleSearch"'),
}


class _GenerationConfig(msgspec.Struct, kw_only=True, omit_defaults=True):
    maxOutputTokens: int | None = None
    thinkingConfig: dict[str, Any] | None = None
    responseMimeType: str | None = None
    responseSchema: dict[str, Any] | None = None


class _GenerateBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The contents come last: so the next request of a session begins with the same bytes."""

    systemInstruction: dict[str, Any] | None = None
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    toolConfig: dict[str, Any] | None = None
    generationConfig: _GenerationConfig | None = None
    contents: list[msgspec.Raw]


class _Model(msgspec.Struct):
    name: str = ""
    inputTokenLimit: int | None = None
    outputTokenLimit: int | None = None
    supportedGenerationMethods: list[str] | None = None


class _Models(msgspec.Struct):
    models: list[_Model] | None = None
    publisherModels: list[_Model] | None = None
    nextPageToken: str | None = None


MODELS = msgspec.json.Decoder(_Models, strict=False)
PACKET: msgspec.json.Decoder[GeminiPacket | list[GeminiPacket]] = msgspec.json.Decoder(
    GeminiPacket | list[GeminiPacket], strict=False
)


class _GeminiStream:
    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.reply = GeminiReply(endpoint)
        self._endpoint, self._model = endpoint, model
        self._body = BodyDecoder(endpoint, model, "a Gemini answer", self._read_packet)
        self.feed = self._body.feed

    @property
    def done(self) -> bool:
        """Not before what it cost is told: that may come after the reason for the end."""
        return self.complete and self.reply.counted

    @property
    def complete(self) -> bool:
        return bool(self.reply.finish)

    def close(self) -> list[Chunk]:
        chunks = self._body.close()
        if not self.complete:
            raise self._body.truncation_error(begun=self.reply.begun)
        return [*chunks, self.reply.build_reply()]

    def _read_packet(self, data: bytes) -> list[Chunk]:
        try:
            said = PACKET.decode(data)
            packets = said if isinstance(said, list) else [said]
            if any(packet.error for packet in packets):
                raise error_from_response(self._endpoint, self._model, data)
            return [chunk for packet in packets for chunk in self.reply.take_packet(packet)]
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._body.format_error(data) from None


class GeminiProvider:
    """One endpoint that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(self, endpoint: Endpoint, client: HttpClient, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = _prepare_endpoint(endpoint)
        self._client = client
        self._refused = RefusedOptions(refused, OPTIONAL, IMAGE_REFUSAL)
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bool, msgspec.Raw] = ((), False, msgspec.Raw())
        self._conversation = GeminiConversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        signs_calls = requires_signatures(request.model)
        # Before the third generation, functions stand alone: beside neither a form for the answer nor the search.
        tools = request.tools if signs_calls or request.schema is None else ()
        search = request.search and "search" not in self._refused and (signs_calls or not tools)
        question = _GenerateBody(
            systemInstruction={"parts": [{"text": request.system}]} if request.system else None,
            generationConfig=self._generation_config(request),
            contents=self._conversation.encode_messages(
                request, sees=self._refused.accepts_images(request.model), native="native" not in self._refused
            ),
        )
        if tools or search:
            question.tools = self._encode_tools(tools, search=search)
        if tools and search:
            question.toolConfig = {"includeServerSideToolInvocations": True}
        return msgspec.json.encode(question)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = _GeminiStream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open_stream(stack, request, body)
            async with aclosing(read_chunks(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def models(self) -> tuple[ModelInfo, ...]:
        found: list[_Model] = []
        token = ""
        for _ in range(PAGES):
            page = await self._fetch_page(token)
            found += [*(page.models or ()), *(page.publisherModels or ())]
            token = page.nextPageToken or ""
            if not token:
                break
        infos = [
            ModelInfo(name=_short_name(model.name), window=model.inputTokenLimit, output=model.outputTokenLimit)
            for model in found
            if "generateContent" in (model.supportedGenerationMethods or ["generateContent"])
        ]
        self._learned = {info.name: info for info in infos if info.name}
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.model_info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    def _generation_config(self, request: ModelRequest) -> _GenerationConfig | None:
        made = _GenerationConfig(maxOutputTokens=request.max_tokens)
        if "thinking" not in self._refused:
            made.thinkingConfig = _thinking_config(request.model, request.effort)
        if request.schema is not None:
            made.responseMimeType, made.responseSchema = "application/json", to_gemini_schema(request.schema)
        return made if made != _GenerationConfig() else None

    async def _open_stream(self, stack: AsyncExitStack, request: ModelRequest, body: bytes) -> HttpResponse:
        """Sends the request; once more where the server only minds an option that it need not have."""
        path = request.model if "/" in request.model else f"models/{request.model}"
        path = self._api_path(f"{quote(path, safe='/')}:streamGenerateContent?alt=sse")
        response = await post_request(stack, self._client, self.endpoint, path, body)
        if response.status == 200:
            return response
        said = await response.read()
        if response.status == 400 and self._refused.learn_refusal(said, request, body):
            return await self._open_stream(stack, request, self.body(request))
        raise await suggest_models(
            self,
            request.model,
            error_from_response(self.endpoint, request.model, said, status=response.status, headers=response.headers),
        )

    def _encode_tools(self, tools: tuple[ToolSpec, ...], *, search: bool) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools or self._tools[1] != search:
            # The service's own search takes the place of ours.
            own = [_encode_function(tool) for tool in tools if not search or tool.name != WEB_SEARCH]
            made: list[dict[str, Any]] = [{"functionDeclarations": own}] if own else []
            made += [{"googleSearch": {}}] if search else []
            self._tools = (tools, search, msgspec.Raw(msgspec.json.encode(made)))
        return self._tools[2]

    async def _fetch_page(self, token: str) -> _Models:
        more = f"&pageToken={quote(token, safe='')}" if token else ""
        # On Vertex a list belongs to nobody's project.
        lists = re.sub(r"/v\w+" + PROJECT, "/v1beta1", self.endpoint.base_url)
        project = re.search(PROJECT, self.endpoint.base_url)
        billed = {"x-goog-user-project": project[1]} if project else {}
        path = self._api_path(f"models?pageSize={VERTEX_PAGE if project else PAGE}{more}")
        listing = replace(self.endpoint, base_url=lists, headers={**billed, **self.endpoint.headers})
        said = await fetch_document(self._client, listing, path)
        try:
            return MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list_error(self.endpoint, said) from None

    def _api_path(self, path: str) -> str:
        """The address is told with or without its version, as the vendor's own programs take it."""
        return path if re.search(VERSIONED, self.endpoint.base_url) else f"v1beta/{path}"


def _prepare_endpoint(endpoint: Endpoint) -> Endpoint:
    """The endpoint with the header of this dialect: a key never goes into the address, those are written everywhere."""
    if not re.search(PROJECT, endpoint.base_url):
        return endpoint if endpoint.login or endpoint.key_header else replace(endpoint, key_header=KEY_HEADER)
    # One of Vertex's places is no place, and its name is not in the address.
    return replace(endpoint, base_url=endpoint.base_url.replace("://global-aiplatform.", "://aiplatform."))


def _thinking_config(model: str, effort: Effort) -> dict[str, Any] | None:
    """How much to think, in the words of the model's generation; thoughts are always asked for."""
    made = gemini_version(model)
    if made is None or made < THINKING:
        return None
    if not effort:
        return {"includeThoughts": True}
    if requires_signatures(model):
        least = "minimal" if "flash" in model else "low"
        return {"includeThoughts": True, "thinkingLevel": least if effort == "none" else effort}
    budget = BUDGETS.get(effort, MIN_BUDGET if "pro" in model else 0)
    return {"includeThoughts": budget > 0, "thinkingBudget": budget}


def _encode_function(tool: ToolSpec) -> dict[str, Any]:
    parameters = to_gemini_schema(tool.schema)
    # A function that takes nothing must not say that it takes an object.
    given = {"parameters": parameters} if parameters.get("properties") else {}
    return {"name": tool.name, "description": tool.description, **given}


def _short_name(name: str) -> str:
    return name.rpartition("models/")[2]
