"""The Converse dialect of Amazon Bedrock: one way to ask all of its models, signed or with a bearer token."""

import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.provider import Alive, Chunk, ModelInfo, Request, ToolSpec
from sylph.net.http import Client
from sylph.net.wire import Response
from sylph.providers import claude
from sylph.providers.asking import listen, meant
from sylph.providers.bedrock_messages import POINT, Conversation
from sylph.providers.bedrock_reply import BROKEN, ConverseReply, Packet
from sylph.providers.endpoint import Endpoint
from sylph.providers.eventstream import Frame, Frames
from sylph.providers.failures import excerpt, failure, no_list
from sylph.providers.minded import Minded
from sylph.providers.shown import BLIND
from sylph.providers.sigv4 import Scope, keys_of, sign

ANSWER = "answer"
IMAGES = "images"
REGION = r"\bbedrock(?:-runtime)?(?:-fips)?\.([a-z]{2}[a-z0-9-]+)\."
DEFAULT_REGION = "us-east-1"
PAGES = 20
CACHING = (3, 5)
# An exception inside of a stream, and the status it would have had outside of one.
STATUS: Mapping[str, int] = {
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


class _Question(msgspec.Struct, kw_only=True, omit_defaults=True):
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
PACKET = msgspec.json.Decoder(Packet, strict=False)


class _Stream:
    """Feed it the bytes of the body; it gives what they say, and `close` ends with the reply."""

    def __init__(self, endpoint: Endpoint, model: str, reply: ConverseReply) -> None:
        self._endpoint, self._model, self._reply = endpoint, model, reply
        self._frames = Frames()

    @property
    def done(self) -> bool:
        """Not before what it cost is told: that comes last."""
        return self.complete and self._reply.counted

    @property
    def complete(self) -> bool:
        return bool(self._reply.stop)

    def feed(self, piece: bytes) -> list[Chunk]:
        chunks = [chunk for frame in self._frames.feed(piece) for chunk in self._frame(frame)]
        return chunks or [Alive()]

    def close(self) -> list[Chunk]:
        if self.complete:
            return [self._reply.reply()]
        if self._reply.begun:
            raise ProviderError("cut", f"{self._endpoint.name} ended the answer before it was complete.")
        raise self._unreadable(self._frames.waiting)

    def _frame(self, frame: Frame) -> list[Chunk]:
        if frame.headers.get(":message-type", "event") != "event":
            raise self._failed(frame)
        try:
            packet = PACKET.decode(frame.payload)
            chunks = self._reply.take(packet)
        except ValueError:  # It is no JSON, no text, or holds no base64.
            raise self._unreadable(frame.payload) from None
        if packet.stopReason in BROKEN:
            raise ProviderError("format", f"{self._endpoint.name} made a call that cannot be read.")
        return chunks

    def _failed(self, frame: Frame) -> ProviderError:
        headers = frame.headers
        kind = headers.get(":exception-type") or headers.get(":error-code", "")
        said = frame.payload or msgspec.json.encode({"message": headers.get(":error-message", kind)})
        status = STATUS.get(kind[:1].lower() + kind[1:], 0)
        return failure(self._endpoint, self._model, said, status=status, headers={"x-amzn-errortype": kind})

    def _unreadable(self, data: bytes) -> ProviderError:
        shown = excerpt(data) or "nothing"
        return ProviderError("format", f"{self._endpoint.name} sent what is not an event stream: {shown}")


class Bedrock:
    """One region that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(
        self, endpoint: Endpoint, client: Client, *, refused: Iterable[str] = (), now: Callable[[], float] = time.time
    ) -> None:
        self.endpoint = endpoint
        self._client = client
        self._now = now
        found = re.search(REGION, endpoint.base_url)
        self._region = found[1] if found else DEFAULT_REGION
        self._refused = Minded(refused, OPTIONAL, BLIND)
        self._learned: dict[str, ModelInfo] = {}
        self._conversation = Conversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: Request) -> bytes:
        native, marks = "native" not in self._refused, self._marks(request.model)
        question = _Question(
            system=[{"text": request.system}, *([POINT] if marks else [])] if request.system else None,
            toolConfig=_tools(request, marks=marks),
            messages=self._conversation.encode(
                request, sees=self._refused.sees(request.model), marks=bool(marks), native=native
            ),
        )
        limit = request.max_tokens or claude.output(request.model)
        thinks = "thinking" not in self._refused and claude.version(request.model) and request.schema is None
        asked = claude.thinking(request.model, request.effort, limit) if thinks else {}
        if asked.get("thinking", {}).get("type") == "enabled" and not self._conversation.thought(
            request, native=native
        ):
            asked = {}
        question.additionalModelRequestFields = asked or None
        if request.max_tokens or asked:
            question.inferenceConfig = {"maxTokens": limit}
        return msgspec.json.encode(question)

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = _Stream(
            self.endpoint, request.model, ConverseReply(answer=ANSWER if request.schema is not None else "")
        )
        async with AsyncExitStack() as stack:
            response = await self._open(stack, request, body)
            async with aclosing(listen(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that can be asked as they are, and the profiles through which the others can."""
        listed = await self._page("foundation-models")
        names = [
            model.modelId
            for model in listed.modelSummaries
            if "TEXT" in (model.outputModalities or ["TEXT"])
            and "ON_DEMAND" in (model.inferenceTypesSupported or ["ON_DEMAND"])
        ]
        names += await self._profiles()
        self._learned = {name: ModelInfo(name=name) for name in names if name}
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    async def _profiles(self) -> list[str]:
        names: list[str] = []
        token = ""
        for _ in range(PAGES):
            more = f"&nextToken={quote(token, safe='')}" if token else ""
            try:
                page = await self._page(f"inference-profiles?maxResults=1000{more}")
            except ProviderError:
                return names  # Not everybody may see them, and they are not everything.
            names += [profile.inferenceProfileId for profile in page.inferenceProfileSummaries]
            token = page.nextToken or ""
            if not token:
                break
        return names

    async def _page(self, path: str) -> _Models:
        # The lists are at another door than the models.
        url = self.endpoint.url(path).replace("://bedrock-runtime", "://bedrock", 1)
        headers = self._signed("GET", url, b"", await self.endpoint.key())
        async with self._client.get(url, headers=headers, timeouts=self.endpoint.timeouts) as response:
            said = await response.read()
        if response.status != 200:
            raise failure(self.endpoint, "", said, status=response.status, headers=response.headers)
        try:
            return MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list(self.endpoint, said) from None

    async def _open(self, stack: AsyncExitStack, request: Request, body: bytes) -> Response:
        """Sends the request; once more where the server only minds an option that it need not have."""
        url = self.endpoint.url(f"model/{quote(request.model, safe='')}/converse-stream")
        key, said = await self.endpoint.key(), b""
        response = await self._post(stack, url, body, key)
        if response.status in (401, 403) and self.endpoint.login is not None:
            said = await response.read()
            if (fresh := await self.endpoint.key(key)) != key:
                response = await self._post(stack, url, body, fresh)
                said = b""
        if response.status == 200:
            return response
        said = said or await response.read()
        if response.status in (400, 403) and self._refused.learn(said, request, body):
            return await self._open(stack, request, self.body(request))
        raise await meant(
            self,
            request.model,
            failure(self.endpoint, request.model, said, status=response.status, headers=response.headers),
        )

    def _marks(self, model: str) -> str:
        """Which models have a cache that wants marks: `all` parts of a prompt, or only its `text`."""
        if "cachePoint" in self._refused:
            return ""
        made = claude.version(model)
        if made is not None and made >= CACHING:
            return "all"
        return "text" if "amazon.nova" in model else ""

    async def _post(self, stack: AsyncExitStack, url: str, body: bytes, key: str) -> Response:
        headers = self._signed("POST", url, body, key)
        return await stack.enter_async_context(
            self._client.post(url, body, headers=headers, timeouts=self.endpoint.timeouts)
        )

    def _signed(self, method: str, url: str, body: bytes, key: str) -> Mapping[str, str]:
        """The headers that let us in: a signature, which is good for one request, or a token."""
        plain = {"Content-Type": "application/json", **self.endpoint.headers}
        if keys := keys_of(key):
            return sign(method, url, body, plain, keys, Scope(self._region, "bedrock", self._now()))
        return {**plain, "Authorization": f"Bearer {key}"} if key else plain


def _tools(request: Request, *, marks: str) -> dict[str, Any] | None:
    if request.schema is not None:
        only = _tool(ToolSpec(ANSWER, "Gives the answer.", request.schema))
        return {"tools": [only], "toolChoice": {"tool": {"name": ANSWER}}}
    if not request.tools:
        return None
    return {"tools": [*map(_tool, request.tools), *([POINT] if marks == "all" else [])]}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    told = {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.schema}}
    return {"toolSpec": told}
