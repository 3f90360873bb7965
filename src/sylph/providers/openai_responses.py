"""The OpenAI Responses dialect, over HTTP or over a WebSocket that stays open."""

import logging
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.provider import Alive, Chunk, ModelInfo, Request, ToolSpec
from sylph.net.http import Client
from sylph.net.wire import Response
from sylph.providers.asking import listen, meant
from sylph.providers.chat_messages import shows
from sylph.providers.endpoint import Endpoint
from sylph.providers.exchange import post
from sylph.providers.failures import complaint, failure
from sylph.providers.openai_chat import BLIND, IMAGES, PICTURED, OpenAIChat
from sylph.providers.responses_items import Items
from sylph.providers.responses_socket import NoSocket, Prompt, Sockets
from sylph.providers.responses_stream import ResponsesStream
from sylph.providers.schemas import answer_format

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
THOUGHTLESS = r"^(ft:)?(gpt-[34]|chatgpt|davinci|babbage)"
# How a server says that it has no such door at all.
NOT_SPOKEN = (404, 405, 501)
ABOUT_MODEL = r"\bmodel|deployment"
# How a body of this dialect is known from one of the other, in its first bytes.
FORM, HEAD = b'"stream":true,"store":false', 1000

logger = logging.getLogger(__name__)


class _Body(msgspec.Struct, kw_only=True, omit_defaults=True):
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


class OpenAIResponses:
    """One endpoint that speaks this dialect. `refused` are options that it, or one of its models, minds.

    A server that is not OpenAI's own may know only Chat Completions: where there is nothing at `responses`, it is
    spoken to in that dialect from then on.
    """

    def __init__(self, endpoint: Endpoint, client: Client, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = endpoint
        self._client = client
        self._refused = set(refused)
        self._tools: tuple[tuple[ToolSpec, ...], bool, msgspec.Raw] = ((), False, msgspec.Raw())
        self._items = Items(endpoint.name)
        self._chat = OpenAIChat(endpoint, client)
        self._other = False
        self._sockets = Sockets(endpoint, client) if endpoint.websocket else None
        if "no_max_tokens" in endpoint.quirks:
            self._refused.add("max_output_tokens")

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: Request) -> bytes:
        if self._other:
            return self._chat.body(request)
        return msgspec.json.encode(self._said(request))

    def _said(self, request: Request) -> _Body:
        model = request.model
        return _Body(
            model=model,
            stream=True,
            store=False,
            include=["reasoning.encrypted_content"] if self._thinks("include", model) else None,
            prompt_cache_key=request.family or None if self._takes("prompt_cache_key", model) else None,
            reasoning=self._reasoning(request) or None,
            text=_text(request.schema) if request.schema and self._takes("text", model) else None,
            max_output_tokens=request.max_tokens if self._takes("max_output_tokens", model) else None,
            tools=self._encoded(request.tools, search=request.search),
            instructions=request.system,
            input=[raw for made in self._made(request) for raw in made],
        )

    def _made(self, request: Request) -> list[list[msgspec.Raw]]:
        sees = self._takes(IMAGES, request.model)
        return self._items.encode(request.model, request.messages, request.image, sees=sees)

    def _prompt(self, request: Request) -> Prompt:
        """The request without what only HTTP needs."""
        head = replace(self._said(request), stream=msgspec.UNSET, input=msgspec.UNSET)
        # How long the answer may be is another matter each time, where a budget is kept.
        base = replace(head, max_output_tokens=None)
        return Prompt(request, msgspec.json.encode(head), msgspec.json.encode(base), self._made(request))

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        if self._other:
            # It may have been made before another call found out what this server speaks.
            made = self._chat.body(request) if FORM in body[:HEAD] else body
            async for chunk in self._chat.stream(request, made):
                yield chunk
            return
        told = False
        try:
            async for chunk in (
                self._sockets.stream(self._prompt(request)) if self._sockets else self._ask(request, body)
            ):
                told = told or not isinstance(chunk, Alive)
                yield chunk
        except NoSocket as error:
            logger.info("%s: no WebSocket (%s) The same over HTTP.", self.name, error)
        except ProviderError as error:
            minded = self._sockets is not None and error.failure == "bad_request" and not told
            if not minded or not self._learn(str(error).encode(), request):
                raise
            # It only minds an option, and HTTP is where that is settled.
            body = self.body(request)
        else:
            return
        async for chunk in self._ask(request, body):
            yield chunk

    async def _ask(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = ResponsesStream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open(stack, request, body)
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
            async with aclosing(listen(response, stream)) as heard:
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

    async def _open(self, stack: AsyncExitStack, request: Request, body: bytes) -> Response | None:
        """Sends the request; once more where the service only minds an option that it need not have.

        None where the server does not know this dialect.
        """
        response = await post(stack, self._client, self.endpoint, "responses", body)
        if response.status == 200:
            return response
        said = await response.read()
        if response.status in NOT_SPOKEN and not self.endpoint.own and not complaint(said).says(ABOUT_MODEL):
            logger.info("%s at %s speaks Chat Completions, and no Responses", self.name, self.endpoint.base_url)
            return None
        learned = response.status in (400, 422) and self._learn(said, request)
        if learned or (response.status in BLIND and self._learn_blind(said, request)):
            return await self._open(stack, request, self.body(request))
        error = failure(self.endpoint, request.model, said, status=response.status, headers=response.headers)
        raise await meant(self, request.model, error)

    def _learn(self, said: bytes, request: Request) -> bool:
        """Whether the complaint is about an option that was sent; it is not sent for this model again."""
        sent = {
            "summary": "summary" in self._reasoning(request),
            "include": self._thinks("include", request.model),
            "reasoning": bool(self._reasoning(request)),
            "max_output_tokens": request.max_tokens is not None,
            "prompt_cache_key": bool(request.family),
            "text": request.schema is not None,
        }
        for option, words in OPTIONAL.items():
            if sent[option] and words in said and self._takes(option, request.model):
                self._refused.add(f"{option} {request.model}")
                return True
        return False

    def _learn_blind(self, said: bytes, request: Request) -> bool:
        if not re.search(PICTURED, said) or not self._takes(IMAGES, request.model) or not shows(request.messages):
            return False
        self._refused.add(f"{IMAGES} {request.model}")
        return True

    def _takes(self, option: str, model: str) -> bool:
        return not self._refused & {option, f"{option} {model}"}

    def _thinks(self, option: str, model: str) -> bool:
        """Whether an option goes to a model that is only for those that think."""
        return self._takes(option, model) and not re.search(THOUGHTLESS, model)

    def _reasoning(self, request: Request) -> dict[str, str]:
        if not self._thinks("reasoning", request.model):
            return {}
        effort = {"effort": request.effort} if request.effort else {}
        return {**effort, "summary": "auto"} if self._takes("summary", request.model) else effort

    def _encoded(self, tools: tuple[ToolSpec, ...], *, search: bool) -> msgspec.Raw | msgspec.UnsetType:
        """The tools' JSON, made once as long as the same tools come again."""
        if not tools and not search:
            return msgspec.UNSET
        if self._tools[0] is not tools or self._tools[1] is not search or not self._tools[2]:
            wire = [_function(tool) for tool in tools] + ([{"type": "web_search"}] if search else [])
            self._tools = (tools, search, msgspec.Raw(msgspec.json.encode(wire)))
        return self._tools[2]


def _text(schema: dict[str, Any]) -> dict[str, Any]:
    return {"format": {"type": "json_schema", **answer_format(schema)}}


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": False,
    }
