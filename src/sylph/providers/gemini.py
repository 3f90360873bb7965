"""Google's Gemini dialect, as spoken by the Gemini API and, under another address, by Vertex."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sylph.core.provider import Chunk, Effort, ModelInfo, Request, ToolSpec
from sylph.net.http import Client
from sylph.net.wire import Response
from sylph.providers.asking import listen, meant
from sylph.providers.body import Body
from sylph.providers.endpoint import Endpoint
from sylph.providers.exchange import get, post
from sylph.providers.failures import failure, no_list
from sylph.providers.gemini_messages import Conversation, signs, version
from sylph.providers.gemini_reply import GeminiReply, Packet
from sylph.providers.minded import Minded
from sylph.providers.schema_cut import gemini
from sylph.providers.shown import BLIND

KEY = "x-goog-api-key"
PAGE, VERTEX_PAGE, PAGES = 1_000, 100, 20
BUDGETS: Mapping[str, int] = {"low": 1_024, "medium": 8_192, "high": 24_576}
LEAST = 128
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


class _Generation(msgspec.Struct, kw_only=True, omit_defaults=True):
    maxOutputTokens: int | None = None
    thinkingConfig: dict[str, Any] | None = None
    responseMimeType: str | None = None
    responseSchema: dict[str, Any] | None = None


class _Question(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The contents come last: so the next request of a session begins with the same bytes."""

    systemInstruction: dict[str, Any] | None = None
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    toolConfig: dict[str, Any] | None = None
    generationConfig: _Generation | None = None
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
PACKET: msgspec.json.Decoder[Packet | list[Packet]] = msgspec.json.Decoder(Packet | list[Packet], strict=False)


class _Stream:
    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.reply = GeminiReply(endpoint)
        self._endpoint, self._model = endpoint, model
        self._body = Body(endpoint, model, "a Gemini answer", self._packet)
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
            raise self._body.ended(begun=self.reply.begun)
        return [*chunks, self.reply.reply()]

    def _packet(self, data: bytes) -> list[Chunk]:
        try:
            said = PACKET.decode(data)
            packets = said if isinstance(said, list) else [said]
            if any(packet.error for packet in packets):
                raise failure(self._endpoint, self._model, data)
            return [chunk for packet in packets for chunk in self.reply.take(packet)]
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._body.unreadable(data) from None


class Gemini:
    """One endpoint that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(self, endpoint: Endpoint, client: Client, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = _opened(endpoint)
        self._client = client
        self._refused = Minded(refused, OPTIONAL, BLIND)
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bool, msgspec.Raw] = ((), False, msgspec.Raw())
        self._conversation = Conversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: Request) -> bytes:
        signs_calls = signs(request.model)
        # Before the third generation, functions stand alone: beside neither a form for the answer nor the search.
        tools = request.tools if signs_calls or request.schema is None else ()
        search = request.search and "search" not in self._refused and (signs_calls or not tools)
        question = _Question(
            systemInstruction={"parts": [{"text": request.system}]} if request.system else None,
            generationConfig=self._generation(request),
            contents=self._conversation.encode(
                request, sees=self._refused.sees(request.model), native="native" not in self._refused
            ),
        )
        if tools or search:
            question.tools = self._encoded(tools, search=search)
        if tools and search:
            question.toolConfig = {"includeServerSideToolInvocations": True}
        return msgspec.json.encode(question)

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = _Stream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open(stack, request, body)
            async with aclosing(listen(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def models(self) -> tuple[ModelInfo, ...]:
        found: list[_Model] = []
        token = ""
        for _ in range(PAGES):
            page = await self._page(token)
            found += [*(page.models or ()), *(page.publisherModels or ())]
            token = page.nextPageToken or ""
            if not token:
                break
        infos = [
            ModelInfo(name=_bare(model.name), window=model.inputTokenLimit, output=model.outputTokenLimit)
            for model in found
            if "generateContent" in (model.supportedGenerationMethods or ["generateContent"])
        ]
        self._learned = {info.name: info for info in infos if info.name}
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    def _generation(self, request: Request) -> _Generation | None:
        made = _Generation(maxOutputTokens=request.max_tokens)
        if "thinking" not in self._refused:
            made.thinkingConfig = _thinking(request.model, request.effort)
        if request.schema is not None:
            made.responseMimeType, made.responseSchema = "application/json", gemini(request.schema)
        return made if made != _Generation() else None

    async def _open(self, stack: AsyncExitStack, request: Request, body: bytes) -> Response:
        """Sends the request; once more where the server only minds an option that it need not have."""
        path = request.model if "/" in request.model else f"models/{request.model}"
        path = self._path(f"{quote(path, safe='/')}:streamGenerateContent?alt=sse")
        response = await post(stack, self._client, self.endpoint, path, body)
        if response.status == 200:
            return response
        said = await response.read()
        if response.status == 400 and self._refused.learn(said, request, body):
            return await self._open(stack, request, self.body(request))
        raise await meant(
            self,
            request.model,
            failure(self.endpoint, request.model, said, status=response.status, headers=response.headers),
        )

    def _encoded(self, tools: tuple[ToolSpec, ...], *, search: bool) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools or self._tools[1] != search:
            # The service's own search takes the place of ours.
            own = [_function(tool) for tool in tools if not search or tool.name != WEB_SEARCH]
            made: list[dict[str, Any]] = [{"functionDeclarations": own}] if own else []
            made += [{"googleSearch": {}}] if search else []
            self._tools = (tools, search, msgspec.Raw(msgspec.json.encode(made)))
        return self._tools[2]

    async def _page(self, token: str) -> _Models:
        more = f"&pageToken={quote(token, safe='')}" if token else ""
        # On Vertex a list belongs to nobody's project.
        lists = re.sub(r"/v\w+" + PROJECT, "/v1beta1", self.endpoint.base_url)
        project = re.search(PROJECT, self.endpoint.base_url)
        billed = {"x-goog-user-project": project[1]} if project else {}
        path = self._path(f"models?pageSize={VERTEX_PAGE if project else PAGE}{more}")
        listing = replace(self.endpoint, base_url=lists, headers={**billed, **self.endpoint.headers})
        said = await get(self._client, listing, path)
        try:
            return MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list(self.endpoint, said) from None

    def _path(self, path: str) -> str:
        """The address is told with or without its version, as the vendor's own programs take it."""
        return path if re.search(VERSIONED, self.endpoint.base_url) else f"v1beta/{path}"


def _opened(endpoint: Endpoint) -> Endpoint:
    """The endpoint with the header of this dialect: a key never goes into the address, those are written everywhere."""
    if not re.search(PROJECT, endpoint.base_url):
        return endpoint if endpoint.login or endpoint.key_header else replace(endpoint, key_header=KEY)
    # One of Vertex's places is no place, and its name is not in the address.
    return replace(endpoint, base_url=endpoint.base_url.replace("://global-aiplatform.", "://aiplatform."))


def _thinking(model: str, effort: Effort) -> dict[str, Any] | None:
    """How much to think, in the words of the model's generation; thoughts are always asked for."""
    made = version(model)
    if made is None or made < THINKING:
        return None
    if not effort:
        return {"includeThoughts": True}
    if signs(model):
        least = "minimal" if "flash" in model else "low"
        return {"includeThoughts": True, "thinkingLevel": least if effort == "none" else effort}
    budget = BUDGETS.get(effort, LEAST if "pro" in model else 0)
    return {"includeThoughts": budget > 0, "thinkingBudget": budget}


def _function(tool: ToolSpec) -> dict[str, Any]:
    parameters = gemini(tool.schema)
    # A function that takes nothing must not say that it takes an object.
    given = {"parameters": parameters} if parameters.get("properties") else {}
    return {"name": tool.name, "description": tool.description, **given}


def _bare(name: str) -> str:
    return name.rpartition("models/")[2]
