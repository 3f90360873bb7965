"""Ollama's own dialect: `/api/chat`, and what it knows of its models."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, ModelInfo, Request, ToolSpec
from sylph.net.http import Client
from sylph.net.wire import Response
from sylph.providers.asking import MEANT_SECONDS, listen, meant
from sylph.providers.chat_messages import shows
from sylph.providers.endpoint import Endpoint
from sylph.providers.exchange import get, post
from sylph.providers.failures import failure, no_list
from sylph.providers.ollama_messages import OllamaMessages, Said
from sylph.providers.ollama_stream import OllamaStream

# A model that could hold more gets this much, unless it is set: the memory for it is taken at once.
LARGEST = 32_768
# What is asked of each model of a list; a list must not take longer for it.
DETAIL_SECONDS = 0.2
LEARN_SECONDS = 5.0
IMAGES, THINK = "images", "think"
OPTIONAL = (THINK,)
# It says that it does not know an image, or lacks the part of the model that would.
BLIND = (400, 500)


class _Body(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The messages come last: so the next request of a session begins with the same bytes."""

    model: str
    stream: bool
    # It would otherwise leave out the beginning of a conversation that is too long, and say nothing.
    truncate: bool
    think: bool | str | None = None
    format: dict[str, Any] | None = None
    options: dict[str, int] | None = None
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: list[msgspec.Raw]


class _Tag(msgspec.Struct):
    name: str = ""
    model: str = ""


class _Tags(msgspec.Struct):
    models: list[_Tag] | None


class _Shown(msgspec.Struct):
    parameters: str | None = None
    model_info: Mapping[str, Any] = {}
    capabilities: list[str] | None = None


TAGS = msgspec.json.Decoder(_Tags)
SHOWN = msgspec.json.Decoder(_Shown, strict=False)


class Ollama:
    """One Ollama server. `refused` are the options that it, or one of its models, minds."""

    def __init__(self, endpoint: Endpoint, client: Client, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = endpoint
        self._client = client
        self._refused = set(refused)
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw())
        self._messages = OllamaMessages(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: Request) -> bytes:
        sees = self._takes(IMAGES, request.model)
        body = _Body(
            model=request.model,
            stream=True,
            truncate=False,
            think=self._think(request),
            format=request.schema,
            options=_options(request) or None,
            tools=self._encoded(request.tools) if request.tools else msgspec.UNSET,
            messages=[
                msgspec.Raw(msgspec.json.encode(Said("system", request.system))),
                *self._messages.encode(request.model, request.messages, request.image, sees=sees),
            ],
        )
        return msgspec.json.encode(body)

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = OllamaStream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open(stack, request, body)
            async with aclosing(listen(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def learn(self, model: str) -> None:
        """What the model holds: without it Ollama gives a model a small window, and forgets the rest in silence."""
        if model in self._learned or model in self.endpoint.models:
            return
        try:
            async with asyncio.timeout(LEARN_SECONDS):
                await self._show(model)
        except (ProviderError, TimeoutError):
            # The request itself will tell what is wrong.
            return

    async def models(self) -> tuple[ModelInfo, ...]:
        said = await get(self._client, self.endpoint, "api/tags")
        try:
            tags = TAGS.decode(said).models or []
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list(self.endpoint, said) from None
        names = [tag.model or tag.name for tag in tags if tag.model or tag.name]
        asked = [asyncio.ensure_future(self._show(name)) for name in names if name not in self._learned]
        if asked:
            _, late = await asyncio.wait(asked, timeout=DETAIL_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return tuple(self.info(name) for name in names)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    async def _show(self, model: str) -> None:
        said = await get(self._client, self.endpoint, "api/show", msgspec.json.encode({"model": model}))
        try:
            shown = SHOWN.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        able = shown.capabilities
        self._learned[model] = ModelInfo(
            name=model,
            window=_window(model, shown),
            sees="vision" in able if able is not None else None,
            calls="tools" in able if able is not None else None,
        )

    async def _open(self, stack: AsyncExitStack, request: Request, body: bytes) -> Response:
        """Sends the request; once more where the model only minds an option that it need not have."""
        response = await post(stack, self._client, self.endpoint, "api/chat", body)
        if response.status == 200:
            return response
        said = await response.read()
        if (response.status == 400 and self._learn_thinking(said, request)) or (
            response.status in BLIND and self._learn_blind(said, request)
        ):
            return await self._open(stack, request, self.body(request))
        error = failure(self.endpoint, request.model, said, status=response.status, headers=response.headers)
        raise await self._meant(request.model, error, said)

    async def _meant(self, model: str, error: ProviderError, said: bytes) -> ProviderError:
        """The same error, with what to do about it."""
        if b"does not support tools" in said:
            able = await self._having(lambda info: info.calls is True)
            steps = [f"choose one that can: -m {self.name}/{name}" for name in able[:3]] or ["sylph models"]
            return ProviderError("bad_request", str(error), status=error.status, next=steps)
        if error.failure == "not_found":
            steps = [f"or get it: ollama pull {model}", *error.trouble.next]
            error = ProviderError("not_found", str(error), status=error.status, next=steps)
        return await meant(self, model, error)

    async def _having(self, able: Callable[[ModelInfo], bool]) -> list[str]:
        try:
            async with asyncio.timeout(MEANT_SECONDS):
                return [info.name for info in await self.models() if able(info)]
        except (ProviderError, TimeoutError):
            return []

    def _think(self, request: Request) -> bool | str | None:
        """Models think by themselves or not at all; how much can only be said to some of them."""
        if not request.effort or not self._takes(THINK, request.model):
            return None
        if request.effort == "none":
            return False
        return request.effort if request.model.startswith("gpt-oss") else True

    def _learn_thinking(self, said: bytes, request: Request) -> bool:
        if b"think" not in said or self._think(request) is None:
            return False
        self._refused.add(f"{THINK} {request.model}")
        return True

    def _learn_blind(self, said: bytes, request: Request) -> bool:
        seen = re.search(rb"image|vision|multimodal", said, re.IGNORECASE)
        if not seen or not self._takes(IMAGES, request.model) or not shows(request.messages):
            return False
        self._refused.add(f"{IMAGES} {request.model}")
        return True

    def _takes(self, option: str, model: str) -> bool:
        return not self._refused & {option, f"{option} {model}"}

    def _encoded(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools:
            wire = [{"type": "function", "function": _function(tool)} for tool in tools]
            self._tools = (tools, msgspec.Raw(msgspec.json.encode(wire)))
        return self._tools[1]


def _options(request: Request) -> dict[str, int]:
    """The window is the same in every request: another one would have the model loaded anew."""
    options = {"num_ctx": request.window} if request.window else {}
    return options | ({"num_predict": request.max_tokens} if request.max_tokens is not None else {})


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def _window(model: str, shown: _Shown) -> int | None:
    """What its makers set, else what it was trained for, but not more than a machine can be expected to hold."""
    if found := re.search(r"^num_ctx\s+(\d+)", shown.parameters or "", re.MULTILINE):
        return int(found[1])
    sizes = (value for key, value in shown.model_info.items() if key.endswith(".context_length"))
    size = next((size for size in sizes if isinstance(size, int) and size > 0), None)
    return size if size is None or model.endswith("cloud") else min(size, LARGEST)
