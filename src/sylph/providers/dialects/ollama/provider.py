"""Ollama's own dialect: `/api/chat`, and what it knows of its models."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, ModelInfo, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.dialects.ollama.messages import OllamaConversation, OllamaWireMessage
from sylph.providers.dialects.ollama.stream import OllamaStream
from sylph.providers.dialects.openai_chat.messages import has_images
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.exchange import fetch_document, post_request
from sylph.providers.stream.reply_reader import SUGGEST_SECONDS, read_chunks, suggest_models
from sylph.providers.vendor_errors import error_from_response, no_list_error

# A model that could hold more gets this much, unless it is set: the memory for it is taken at once.
LARGEST_WINDOW = 32_768
# What is asked of each model of a list; a list must not take longer for it.
DETAIL_SECONDS = 0.2
LEARN_SECONDS = 5.0
IMAGES, THINK = "images", "think"
OPTIONAL = (THINK,)
# It says that it does not know an image, or lacks the part of the model that would.
IMAGE_REFUSAL_STATUS = (400, 500)


class _ChatBody(msgspec.Struct, kw_only=True, omit_defaults=True):
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


class _ModelDetails(msgspec.Struct):
    parameters: str | None = None
    model_info: Mapping[str, Any] = {}
    capabilities: list[str] | None = None


TAGS = msgspec.json.Decoder(_Tags)
MODEL_DETAILS = msgspec.json.Decoder(_ModelDetails, strict=False)


class OllamaProvider:
    """One Ollama server. `refused` are the options that it, or one of its models, minds."""

    def __init__(self, endpoint: Endpoint, client: HttpClient, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = endpoint
        self._client = client
        self._refused = set(refused)
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw())
        self._messages = OllamaConversation(endpoint.name)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        sees = self._accepts_option(IMAGES, request.model)
        body = _ChatBody(
            model=request.model,
            stream=True,
            truncate=False,
            think=self._think_option(request),
            format=request.schema,
            options=_encode_options(request) or None,
            tools=self._encode_tools(request.tools) if request.tools else msgspec.UNSET,
            messages=[
                msgspec.Raw(msgspec.json.encode(OllamaWireMessage("system", request.system))),
                *self._messages.encode_messages(request.model, request.messages, request.image, sees=sees),
            ],
        )
        return msgspec.json.encode(body)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = OllamaStream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open_stream(stack, request, body)
            async with aclosing(read_chunks(response, stream)) as heard:
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
                await self._fetch_details(model)
        except (ProviderError, TimeoutError):
            # The request itself will tell what is wrong.
            return

    async def models(self) -> tuple[ModelInfo, ...]:
        said = await fetch_document(self._client, self.endpoint, "api/tags")
        try:
            tags = TAGS.decode(said).models or []
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list_error(self.endpoint, said) from None
        names = [tag.model or tag.name for tag in tags if tag.model or tag.name]
        asked = [asyncio.ensure_future(self._fetch_details(name)) for name in names if name not in self._learned]
        if asked:
            _, late = await asyncio.wait(asked, timeout=DETAIL_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return tuple(self.info(name) for name in names)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.model_info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    async def _fetch_details(self, model: str) -> None:
        said = await fetch_document(self._client, self.endpoint, "api/show", msgspec.json.encode({"model": model}))
        try:
            shown = MODEL_DETAILS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        able = shown.capabilities
        self._learned[model] = ModelInfo(
            name=model,
            window=_context_window(model, shown),
            sees="vision" in able if able is not None else None,
            calls="tools" in able if able is not None else None,
        )

    async def _open_stream(self, stack: AsyncExitStack, request: ModelRequest, body: bytes) -> HttpResponse:
        """Sends the request; once more where the model only minds an option that it need not have."""
        response = await post_request(stack, self._client, self.endpoint, "api/chat", body)
        if response.status == 200:
            return response
        said = await response.read()
        if (response.status == 400 and self._learn_thinking(said, request)) or (
            response.status in IMAGE_REFUSAL_STATUS and self._learn_image_refusal(said, request)
        ):
            return await self._open_stream(stack, request, self.body(request))
        error = error_from_response(
            self.endpoint, request.model, said, status=response.status, headers=response.headers
        )
        raise await self._explain_error(request.model, error, said)

    async def _explain_error(self, model: str, error: ProviderError, said: bytes) -> ProviderError:
        """The same error, with what to do about it."""
        if b"does not support tools" in said:
            able = await self._find_capable(lambda info: info.calls is True)
            steps = [f"choose one that can: -m {self.name}/{name}" for name in able[:3]] or ["sylph models"]
            return ProviderError("bad_request", str(error), status=error.status, next=steps)
        if error.failure == "not_found":
            steps = [f"or get it: ollama pull {model}", *error.trouble.next]
            error = ProviderError("not_found", str(error), status=error.status, next=steps)
        return await suggest_models(self, model, error)

    async def _find_capable(self, able: Callable[[ModelInfo], bool]) -> list[str]:
        try:
            async with asyncio.timeout(SUGGEST_SECONDS):
                return [info.name for info in await self.models() if able(info)]
        except (ProviderError, TimeoutError):
            return []

    def _think_option(self, request: ModelRequest) -> bool | str | None:
        """Models think by themselves or not at all; how much can only be said to some of them."""
        if not request.effort or not self._accepts_option(THINK, request.model):
            return None
        if request.effort == "none":
            return False
        return request.effort if request.model.startswith("gpt-oss") else True

    def _learn_thinking(self, said: bytes, request: ModelRequest) -> bool:
        if b"think" not in said or self._think_option(request) is None:
            return False
        self._refused.add(f"{THINK} {request.model}")
        return True

    def _learn_image_refusal(self, said: bytes, request: ModelRequest) -> bool:
        seen = re.search(rb"image|vision|multimodal", said, re.IGNORECASE)
        if not seen or not self._accepts_option(IMAGES, request.model) or not has_images(request.messages):
            return False
        self._refused.add(f"{IMAGES} {request.model}")
        return True

    def _accepts_option(self, option: str, model: str) -> bool:
        return not self._refused & {option, f"{option} {model}"}

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools:
            wire = [{"type": "function", "function": _encode_function(tool)} for tool in tools]
            self._tools = (tools, msgspec.Raw(msgspec.json.encode(wire)))
        return self._tools[1]


def _encode_options(request: ModelRequest) -> dict[str, int]:
    """The window is the same in every request: another one would have the model loaded anew."""
    options = {"num_ctx": request.window} if request.window else {}
    return options | ({"num_predict": request.max_tokens} if request.max_tokens is not None else {})


def _encode_function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def _context_window(model: str, shown: _ModelDetails) -> int | None:
    """What its makers set, else what it was trained for, but not more than a machine can be expected to hold."""
    if found := re.search(r"^num_ctx\s+(\d+)", shown.parameters or "", re.MULTILINE):
        return int(found[1])
    sizes = (value for key, value in shown.model_info.items() if key.endswith(".context_length"))
    size = next((size for size in sizes if isinstance(size, int) and size > 0), None)
    return size if size is None or model.endswith("cloud") else min(size, LARGEST_WINDOW)
