"""The Converse dialect of Amazon Bedrock: one way to ask all of its models, signed or with a bearer token."""

import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, KeepAlive, ModelInfo, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.dialects.attachments import IMAGE_REFUSAL
from sylph.providers.dialects.bedrock.messages import CACHE_POINT, BedrockConversation
from sylph.providers.dialects.bedrock.reply import MALFORMED_REASONS, ConverseEvent, ConverseReply
from sylph.providers.dialects.bedrock.sigv4 import SignatureScope, parse_aws_keys, sign_request
from sylph.providers.dialects.refused_options import RefusedOptions
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.aws_event_stream import EventStreamMessage, EventStreamParser
from sylph.providers.stream.reply_reader import read_chunks, suggest_models
from sylph.providers.vendor_errors import body_excerpt, error_from_response, no_list_error
from sylph.providers.vendors import claude_models

ANSWER_TOOL = "answer"
IMAGES = "images"
REGION = r"\bbedrock(?:-runtime)?(?:-fips)?\.([a-z]{2}[a-z0-9-]+)\."
DEFAULT_REGION = "us-east-1"
PAGES = 20
CACHING_SINCE = (3, 5)
# An exception inside of a stream, and the status it would have had outside of one.
EXCEPTION_STATUS: Mapping[str, int] = {
    "validationException": 400,
    "throttlingException": 429,
    "modelTimeoutException": 408,
    "modelStreamErrorException": 424,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
}
# What a server may refuse: the words in its complaint that tell so, and the bytes that show that it was sent.
OPTIONAL: Mapping[str, tuple[bytes, bytes]] = {
    "cachePoint": (rb"(?i)cache.?point|prompt caching|caching", b'"cachePoint"'),
    "native": (rb"(?i)signature|thinking.{0,80}(cannot be modified|must remain)|Expected .thinking", b'"signature"'),
    "thinking": (rb"(?i)thinking|reasoning|effort|additionalModelRequestFields", b'"additionalModelRequestFields"'),
}


class _ConverseBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The messages come last: so the next request of a session begins with the same bytes."""

    inferenceConfig: dict[str, Any] | None = None
    additionalModelRequestFields: dict[str, Any] | None = None
    toolConfig: dict[str, Any] | None = None
    system: list[dict[str, Any]] | None = None
    messages: list[msgspec.Raw]


class _Model(msgspec.Struct):
    modelId: str = ""
    outputModalities: list[str] = []
    inferenceTypesSupported: list[str] = []
    inferenceProfileId: str = ""


class _Models(msgspec.Struct):
    modelSummaries: list[_Model] = []
    inferenceProfileSummaries: list[_Model] = []
    nextToken: str | None = None


MODELS = msgspec.json.Decoder(_Models, strict=False)
PACKET = msgspec.json.Decoder(ConverseEvent, strict=False)


class _ConverseStream:
    """Feed it the bytes of the body; it gives what they say, and `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str, reply: ConverseReply) -> None:
        self._endpoint, self._model, self._reply = endpoint, model, reply
        self._frames = EventStreamParser()

    @property
    def done(self) -> bool:
        """Not before what it cost is told: that comes last."""
        return self.complete and self._reply.counted

    @property
    def complete(self) -> bool:
        return bool(self._reply.stop)

    def feed(self, piece: bytes) -> list[Chunk]:
        chunks = [chunk for frame in self._frames.feed(piece) for chunk in self._read_message(frame)]
        return chunks or [KeepAlive()]

    def close(self) -> list[Chunk]:
        if self.complete:
            return [self._reply.build_reply()]
        if self._reply.begun:
            raise ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        raise self._format_error(self._frames.pending_bytes)

    def _read_message(self, frame: EventStreamMessage) -> list[Chunk]:
        if frame.headers.get(":message-type", "event") != "event":
            raise self._exception_error(frame)
        try:
            packet = PACKET.decode(frame.payload)
            chunks = self._reply.take_event(packet)
        except ValueError:  # It is no JSON, no text, or holds no base64.
            raise self._format_error(frame.payload) from None
        if packet.stopReason in MALFORMED_REASONS:
            raise ProviderError("format", f"{self._endpoint.name} made a call that cannot be read.")
        return chunks

    def _exception_error(self, frame: EventStreamMessage) -> ProviderError:
        headers = frame.headers
        kind = headers.get(":exception-type") or headers.get(":error-code", "")
        said = frame.payload or msgspec.json.encode({"message": headers.get(":error-message", kind)})
        status = EXCEPTION_STATUS.get(kind[:1].lower() + kind[1:], 0)
        return error_from_response(self._endpoint, self._model, said, status=status, headers={"x-amzn-errortype": kind})

    def _format_error(self, data: bytes) -> ProviderError:
        shown = body_excerpt(data) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not an event stream: {shown}")


class BedrockProvider:
    """One region that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        client: HttpClient,
        *,
        refused: Iterable[str] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self.endpoint = endpoint
        self._client = client
        self._now = now
        found = re.search(REGION, endpoint.base_url)
        self._region = found[1] if found else DEFAULT_REGION
        self._refused = RefusedOptions(refused, OPTIONAL, IMAGE_REFUSAL)
        self._learned: dict[str, ModelInfo] = {}
        self._conversation = BedrockConversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        native, marks = "native" not in self._refused, self._cache_mode(request.model)
        question = _ConverseBody(
            system=[{"text": request.system}, *([CACHE_POINT] if marks else [])] if request.system else None,
            toolConfig=_tool_config(request, marks=marks),
            messages=self._conversation.encode_messages(
                request, sees=self._refused.accepts_images(request.model), marks=bool(marks), native=native
            ),
        )
        limit = request.max_tokens or claude_models.max_output_tokens(request.model)
        thinks = (
            "thinking" not in self._refused and claude_models.claude_version(request.model) and request.schema is None
        )
        asked = claude_models.thinking_options(request.model, request.effort, limit) if thinks else {}
        if asked.get("thinking", {}).get("type") == "enabled" and not self._conversation.starts_with_thinking(
            request, native=native
        ):
            asked = {}
        question.additionalModelRequestFields = asked or None
        if request.max_tokens or asked:
            question.inferenceConfig = {"maxTokens": limit}
        return msgspec.json.encode(question)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = _ConverseStream(
            self.endpoint, request.model, ConverseReply(answer=ANSWER_TOOL if request.schema is not None else "")
        )
        async with AsyncExitStack() as stack:
            response = await self._open_stream(stack, request, body)
            async with aclosing(read_chunks(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that can be asked as they are, and the profiles through which the others can."""
        listed = await self._fetch_page("foundation-models")
        names = [
            model.modelId
            for model in listed.modelSummaries
            if "TEXT" in (model.outputModalities or ["TEXT"])
            and "ON_DEMAND" in (model.inferenceTypesSupported or ["ON_DEMAND"])
        ]
        names += await self._list_profiles()
        self._learned = {name: ModelInfo(name=name) for name in names if name}
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.model_info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    async def _list_profiles(self) -> list[str]:
        names: list[str] = []
        token = ""
        for _ in range(PAGES):
            more = f"&nextToken={quote(token, safe='')}" if token else ""
            try:
                page = await self._fetch_page(f"inference-profiles?maxResults=1000{more}")
            except ProviderError:
                return names  # Not everybody may see them, and they are not everything.
            names += [profile.inferenceProfileId for profile in page.inferenceProfileSummaries]
            token = page.nextToken or ""
            if not token:
                break
        return names

    async def _fetch_page(self, path: str) -> _Models:
        # The lists are at another door than the models.
        url = self.endpoint.url_for(path).replace("://bedrock-runtime", "://bedrock", 1)
        headers = self._sign_headers("GET", url, b"", await self.endpoint.resolve_key())
        async with self._client.get(url, headers=headers, timeouts=self.endpoint.timeouts) as response:
            said = await response.read()
        if response.status != 200:
            raise error_from_response(self.endpoint, "", said, status=response.status, headers=response.headers)
        try:
            return MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list_error(self.endpoint, said) from None

    async def _open_stream(self, stack: AsyncExitStack, request: ModelRequest, body: bytes) -> HttpResponse:
        """Sends the request; once more where the server only minds an option that it need not have."""
        url = self.endpoint.url_for(f"model/{quote(request.model, safe='')}/converse-stream")
        key, said = await self.endpoint.resolve_key(), b""
        response = await self._post_signed(stack, url, body, key)
        if response.status in (401, 403) and self.endpoint.login is not None:
            said = await response.read()
            if (fresh := await self.endpoint.resolve_key(key)) != key:
                response = await self._post_signed(stack, url, body, fresh)
                said = b""
        if response.status == 200:
            return response
        said = said or await response.read()
        if response.status in (400, 403) and self._refused.learn_refusal(said, request, body):
            return await self._open_stream(stack, request, self.body(request))
        raise await suggest_models(
            self,
            request.model,
            error_from_response(self.endpoint, request.model, said, status=response.status, headers=response.headers),
        )

    def _cache_mode(self, model: str) -> str:
        """Which models have a cache that wants marks: `all` parts of a prompt, or only its `text`."""
        if "cachePoint" in self._refused:
            return ""
        made = claude_models.claude_version(model)
        if made is not None and made >= CACHING_SINCE:
            return "all"
        return "text" if "amazon.nova" in model else ""

    async def _post_signed(self, stack: AsyncExitStack, url: str, body: bytes, key: str) -> HttpResponse:
        headers = self._sign_headers("POST", url, body, key)
        return await stack.enter_async_context(
            self._client.post(url, body, headers=headers, timeouts=self.endpoint.timeouts)
        )

    def _sign_headers(self, method: str, url: str, body: bytes, key: str) -> Mapping[str, str]:
        """The headers that let us in: a signature, which is good for one request, or a token."""
        plain = {"Content-Type": "application/json", **self.endpoint.headers}
        if keys := parse_aws_keys(key):
            return sign_request(method, url, body, plain, keys, SignatureScope(self._region, "bedrock", self._now()))
        return {**plain, "Authorization": f"Bearer {key}"} if key else plain


def _tool_config(request: ModelRequest, *, marks: str) -> dict[str, Any] | None:
    if request.schema is not None:
        only = _encode_tool(ToolSpec(ANSWER_TOOL, "Gives the answer.", request.schema))
        return {"tools": [only], "toolChoice": {"tool": {"name": ANSWER_TOOL}}}
    if not request.tools:
        return None
    return {"tools": [*map(_encode_tool, request.tools), *([CACHE_POINT] if marks == "all" else [])]}


def _encode_tool(tool: ToolSpec) -> dict[str, Any]:
    told = {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.schema}}
    return {"toolSpec": told}
