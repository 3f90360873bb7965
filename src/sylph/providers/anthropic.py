"""The Anthropic Messages dialect, as spoken by Anthropic and by the services that offer its address too."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sylph.core.provider import Chunk, ModelInfo, Request, ToolSpec
from sylph.net.http import Client
from sylph.net.wire import Response
from sylph.providers import claude
from sylph.providers.anthropic_messages import MARK, Conversation
from sylph.providers.anthropic_reply import PAUSED, MessageReply, Packet
from sylph.providers.asking import listen, meant
from sylph.providers.body import Body
from sylph.providers.endpoint import Endpoint
from sylph.providers.exchange import STREAM, get, post
from sylph.providers.failures import failure, no_list
from sylph.providers.schema_cut import closed
from sylph.providers.shown import BLIND, BLIND_STATUS, shows

VERSION = "2023-06-01"
KEY = "x-api-key"
INTERLEAVED = "interleaved-thinking-2025-05-14"
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
ANSWER = "answer"
PAGE, PAGES = 1_000, 20
# A service may pause a long search; so often it is told to go on.
PAUSES = 10
IMAGES = "images"
# What a server may refuse: the words in its complaint that tell so, and the bytes that show that it was sent.
OPTIONAL: Mapping[str, tuple[bytes, bytes]] = {
    "cache_control": (rb"cache_control", MARK),
    "native": (rb"signature|thinking.{0,80}(cannot be modified|must remain)|Expected .thinking", b'"signature"'),
    "thinking": (rb"thinking|effort|adaptive", b'"thinking":{"type":"'),
    "format": (rb"output_config|output_format|schema", b'"format":{"type":"json_schema"'),
    "search": (rb"web_search|server tool", b'"type":"web_search_'),
}
TOO_MANY = rb"max_tokens: \d+ > (\d+)"


class _Body(msgspec.Struct, kw_only=True, omit_defaults=True):
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
PACKET = msgspec.json.Decoder(Packet, strict=False)


class _Stream:
    """One body of an answer, which may have more than one."""

    def __init__(self, endpoint: Endpoint, model: str, reply: MessageReply) -> None:
        self._endpoint, self._model, self._reply = endpoint, model, reply
        self._body = Body(endpoint, model, "an Anthropic message", self._packet)
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
            raise self._body.ended(begun=self._reply.begun)
        return chunks

    def _packet(self, data: bytes) -> list[Chunk]:
        try:
            packet = PACKET.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._body.unreadable(data) from None
        if packet.type == "error" or packet.error:
            raise failure(self._endpoint, self._model, data)
        return self._reply.take(packet)


class Anthropic:
    """One endpoint that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(self, endpoint: Endpoint, client: Client, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = _opened(endpoint)
        self._client = client
        self._refused = set(refused)
        self._outputs: dict[str, int] = {}
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bool, msgspec.Raw] = ((), False, msgspec.Raw())
        self._conversation = Conversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: Request) -> bytes:
        return msgspec.json.encode(self._question(request))

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        reply = MessageReply(answer=ANSWER if self._forced(request) else "")
        for _ in range(PAUSES):
            async with aclosing(self._hear(request, body, reply)) as heard:
                async for chunk in heard:
                    yield chunk
            if reply.stop != PAUSED:
                break
            body = self._going_on(request, reply)
            reply.resume()
        yield reply.reply()

    async def models(self) -> tuple[ModelInfo, ...]:
        found: dict[str, ModelInfo] = {}
        after = ""
        for _ in range(PAGES):
            page = await self._page(after)
            for model in page.data or ():
                found[model.id] = ModelInfo(name=model.id, window=model.window)
            if not page.has_more or not page.last_id or page.last_id == after:
                break
            after = page.last_id
        self._learned = {name: info for name, info in found.items() if name}
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        """`output` is what a request asks for: it must say how much, and the same every time."""
        known = self.endpoint.info(model, self._learned.get(model))
        return replace(known, output=self._limit(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    def _limit(self, model: str) -> int:
        """Never what the service's list says: a body must not depend on whether somebody has looked at that."""
        return self._outputs.get(model) or self.endpoint.info(model).output or claude.output(model)

    def _question(self, request: Request) -> _Body:
        limit = request.max_tokens or self._limit(request.model)
        marks, native = "cache_control" not in self._refused, "native" not in self._refused
        body = _Body(
            model=request.model,
            max_tokens=limit,
            stream=True,
            system=_system(request.system, marks=marks),
            messages=self._conversation.encode(request, sees=self._sees(request.model), marks=marks, native=native),
        )
        search = request.search and "search" not in self._refused
        if request.tools or search:
            body.tools = self._encoded(request.tools, search=search, marks=marks)
        if self._forced(request):
            body.tools = _only(request.schema or {}, marks=marks)
            body.tool_choice = {"type": "tool", "name": ANSWER}
            return body
        asked = claude.thinking(request.model, request.effort, limit) if "thinking" not in self._refused else {}
        thinking: dict[str, Any] | None = asked.get("thinking")
        if thinking and (thinking["type"] != "enabled" or self._conversation.thought(request, native=native)):
            body.thinking = thinking
        body.output_config = asked.get("output_config")
        if request.schema is not None:
            form = {"type": "json_schema", "schema": closed(request.schema)}
            body.output_config = {**(body.output_config or {}), "format": form}
        return body

    def _forced(self, request: Request) -> bool:
        """Whether the answer's form is had by a tool that must be called."""
        return request.schema is not None and ("format" in self._refused or not claude.structured(request.model))

    def _going_on(self, request: Request, reply: MessageReply) -> bytes:
        """The same question with what was answered so far: the service goes on from there."""
        body = self._question(request)
        said = b'{"role":"assistant","content":[%b]}' % b",".join(reply.native())
        body.messages.append(msgspec.Raw(said))
        return msgspec.json.encode(body)

    async def _hear(self, request: Request, body: bytes, reply: MessageReply) -> AsyncGenerator[Chunk, None]:
        stream = _Stream(self.endpoint, request.model, reply)
        async with AsyncExitStack() as stack:
            response = await self._open(stack, request, body)
            async with aclosing(listen(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def _open(self, stack: AsyncExitStack, request: Request, body: bytes) -> Response:
        """Sends the request; once more where the server only minds an option that it need not have."""
        # Older models think between calls only when they are asked to.
        beta = {"anthropic-beta": INTERLEAVED} if b'"thinking":{"type":"enabled"' in body[:400] else {}
        response = await post(stack, self._client, self.endpoint, self._path("messages"), body, {**STREAM, **beta})
        if response.status == 200:
            return response
        said = await response.read()
        learned = response.status in (400, 422) and self._learn(said, request, body)
        if learned or (response.status in BLIND_STATUS and self._learn_blind(said, request)):
            return await self._open(stack, request, self.body(request))
        raise await meant(
            self,
            request.model,
            failure(self.endpoint, request.model, said, status=response.status, headers=response.headers),
        )

    def _learn(self, said: bytes, request: Request, body: bytes) -> bool:
        """Whether the complaint is about an option that was sent; it is not sent to this endpoint again."""
        found = re.search(TOO_MANY, said)
        if found and not request.max_tokens and int(found[1]) < self._limit(request.model):
            self._outputs[request.model] = int(found[1])
            return True
        for option, (words, sent) in OPTIONAL.items():
            if option not in self._refused and sent in body and re.search(words, said):
                self._refused.add(option)
                return True
        return False

    def _learn_blind(self, said: bytes, request: Request) -> bool:
        """Whether the complaint is about images that were sent; this model is told in words from now on."""
        if not re.search(BLIND, said) or not self._sees(request.model) or not shows(request.messages):
            return False
        self._refused.add(f"{IMAGES} {request.model}")
        return True

    def _sees(self, model: str) -> bool:
        """Whether it is shown images: unless it is known to mind."""
        return not self._refused & {IMAGES, f"{IMAGES} {model}"}

    def _encoded(self, tools: tuple[ToolSpec, ...], *, search: bool, marks: bool) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools or self._tools[1] != search or marks != (MARK in bytes(self._tools[2])):
            # The service's own search takes the place of one of the same name.
            own = [_tool(tool) for tool in tools if not search or tool.name != SEARCH["name"]]
            self._tools = (tools, search, _marked([*own, *([SEARCH] if search else [])], marks=marks))
        return self._tools[2]

    async def _page(self, after: str) -> _Models:
        more = f"&after_id={quote(after, safe='')}" if after else ""
        said = await get(self._client, self.endpoint, self._path(f"models?limit={PAGE}{more}"))
        try:
            return MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list(self.endpoint, said) from None

    def _path(self, path: str) -> str:
        """The address is told with or without its version, as the vendor's own programs take it."""
        return path if self.endpoint.base_url.rstrip("/").endswith("/v1") else f"v1/{path}"


def _opened(endpoint: Endpoint) -> Endpoint:
    """The endpoint with the headers of this dialect, whatever the table says of it."""
    headers = {"anthropic-version": VERSION, **endpoint.headers}
    if endpoint.login is not None:
        return replace(endpoint, headers=headers)
    if (key := endpoint.api_key.strip()) and not (endpoint.own and endpoint.key_header == KEY):
        # Others that speak this dialect want the key where most services want it.
        headers = {"Authorization": f"Bearer {key}", **headers}
    return replace(endpoint, headers=headers, key_header=KEY)


def _system(text: str, *, marks: bool) -> msgspec.Raw | msgspec.UnsetType:
    return _marked([{"type": "text", "text": text}], marks=marks) if text else msgspec.UNSET


def _only(schema: dict[str, Any], *, marks: bool) -> msgspec.Raw:
    """The one tool of a question whose answer must have a form."""
    return _marked([_tool(ToolSpec(ANSWER, "Gives the answer.", schema))], marks=marks)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _marked(items: list[dict[str, Any]], *, marks: bool) -> msgspec.Raw:
    made = msgspec.json.encode(items)
    return msgspec.Raw(made.removesuffix(b"}]") + MARK + b"}]" if marks and items else made)
