"""The OpenAI Chat Completions dialect, as spoken by OpenAI, Ollama, llama.cpp, vLLM, LM Studio and many more."""

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec

from sylph.core.provider import Chunk, ModelInfo, ModelRequest, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.dialects.openai_chat.messages import ChatConversation, ChatWireMessage, has_images
from sylph.providers.dialects.openai_chat.stream import ChatStream
from sylph.providers.dialects.strict_schema import answer_format
from sylph.providers.endpoint import Endpoint
from sylph.providers.stream.exchange import fetch_document, post_request
from sylph.providers.stream.reply_reader import read_chunks, suggest_models
from sylph.providers.vendor_errors import error_from_response, no_list_error

# What a server may refuse, and the words in its complaint that tell so.
OPTIONAL = {
    "stream_options": b"stream_options",
    "max_tokens": b"max_completion_tokens",
    "reasoning_effort": b"reasoning_effort",
    "prompt_cache_key": b"prompt_cache_key",
    "response_format": b"response_format",
}
QUIRK_REFUSALS = {"no_stream_usage": "stream_options"}
IMAGES = "images"
# How a model that takes no images says so: some services find no such model, some fail.
IMAGE_REFUSAL = rb"(?i)image|\bfile"
IMAGE_REFUSAL_STATUS = (400, 404, 415, 422, 500, 501)


class _ChatBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The messages come last: so the next request of a session begins with the same bytes."""

    model: str
    stream: bool
    stream_options: dict[str, bool] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    prompt_cache_key: str | None = None
    response_format: dict[str, Any] | None = None
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: list[msgspec.Raw]


class _Meta(msgspec.Struct):
    n_ctx: int | None = None
    n_ctx_train: int | None = None


class _Model(msgspec.Struct):
    id: str = ""
    context_length: int | None = None
    context_window: int | None = None
    max_model_len: int | None = None
    max_context_length: int | None = None
    meta: _Meta | None = None


class _Models(msgspec.Struct):
    data: list[_Model] | None


MODELS: msgspec.json.Decoder[_Models | list[_Model]] = msgspec.json.Decoder(_Models | list[_Model], strict=False)


class OpenAIChatProvider:
    """One endpoint that speaks this dialect. `client` is shared and stays the owner's to close.

    `refused` are the options that the endpoint minds, `images` or those of one model among them; it is not sent them.
    """

    def __init__(self, endpoint: Endpoint, client: HttpClient, *, refused: Iterable[str] = ()) -> None:
        self.endpoint = endpoint
        self._client = client
        self._refused = {*refused, *(QUIRK_REFUSALS[quirk] for quirk in endpoint.quirks & QUIRK_REFUSALS.keys())}
        self._learned: dict[str, ModelInfo] = {}
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw())
        self._wire = ChatConversation()

    @property
    def name(self) -> str:
        return self.endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        fits_old, quirks = "max_tokens" not in self._refused, self.endpoint.quirks
        thinker = f"{self.name}/{request.model}" if "thoughts_back" in quirks else ""
        body = _ChatBody(
            model=request.model,
            stream=True,
            stream_options=None if "stream_options" in self._refused else {"include_usage": True},
            max_tokens=request.max_tokens if fits_old else None,
            max_completion_tokens=None if fits_old else request.max_tokens,
            reasoning_effort=request.effort or None
            if self._accepts_option("reasoning_effort", quirks, "effort")
            else None,
            prompt_cache_key=request.family or None
            if self._accepts_option("prompt_cache_key", quirks, "cache_key")
            else None,
            response_format=_response_format(request.schema)
            if request.schema and self._accepts_option("response_format")
            else None,
            tools=self._encode_tools(request.tools) if request.tools else msgspec.UNSET,
            messages=[
                msgspec.Raw(msgspec.json.encode(ChatWireMessage("system", request.system))),
                *self._wire.encode_messages(
                    request.messages, request.image, sees=self._accepts_images(request.model), model=thinker
                ),
            ],
        )
        return msgspec.json.encode(body)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        stream = ChatStream(self.endpoint, request.model)
        async with AsyncExitStack() as stack:
            response = await self._open_stream(stack, request, body)
            async with aclosing(read_chunks(response, stream)) as heard:
                async for chunk in heard:
                    yield chunk
        for chunk in stream.close():
            yield chunk

    async def models(self) -> tuple[ModelInfo, ...]:
        said = await fetch_document(self._client, self.endpoint, "models")
        try:
            listed = MODELS.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_list_error(self.endpoint, said) from None
        models = listed if isinstance(listed, list) else listed.data or []
        self._learned = {
            model.id: ModelInfo(name=model.id, window=_context_window(model)) for model in models if model.id
        }
        return tuple(self.info(name) for name in self._learned)

    def info(self, model: str) -> ModelInfo:
        return self.endpoint.model_info(model, self._learned.get(model))

    async def close(self) -> None:
        """Nothing to do: the connections are the client's."""

    async def _open_stream(self, stack: AsyncExitStack, request: ModelRequest, body: bytes) -> HttpResponse:
        """Sends the request; once more where the server only minds an option that it need not have."""
        response = await post_request(stack, self._client, self.endpoint, "chat/completions", body)
        if response.status == 200:
            return response
        said = await response.read()
        learned = response.status in (400, 422) and self._learn_refusal(said, request)
        if learned or (response.status in IMAGE_REFUSAL_STATUS and self._learn_image_refusal(said, request)):
            return await self._open_stream(stack, request, self.body(request))
        error = error_from_response(
            self.endpoint, request.model, said, status=response.status, headers=response.headers
        )
        raise await suggest_models(self, request.model, error)

    def _learn_refusal(self, said: bytes, request: ModelRequest) -> bool:
        """Whether the complaint is about an option that was sent; it is not sent to this endpoint again."""
        sent = {
            "stream_options": True,
            "max_tokens": request.max_tokens is not None,
            "reasoning_effort": bool(request.effort),
            "prompt_cache_key": bool(request.family),
            "response_format": request.schema is not None,
        }
        for option, words in OPTIONAL.items():
            if sent[option] and words in said and option not in self._refused:
                self._refused.add(option)
                return True
        return False

    def _accepts_option(self, option: str, quirks: frozenset[str] = frozenset(), quirk: str = "") -> bool:
        return option not in self._refused and (not quirk or quirk in quirks)

    def _accepts_images(self, model: str) -> bool:
        """Whether it is shown images: unless it is known to mind."""
        return not self._refused & {IMAGES, f"{IMAGES} {model}"}

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

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """The tools' JSON, made once as long as the same tools come again."""
        if self._tools[0] is not tools:
            wire = [{"type": "function", "function": _encode_function(tool)} for tool in tools]
            self._tools = (tools, msgspec.Raw(msgspec.json.encode(wire)))
        return self._tools[1]


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": answer_format(schema)}


def _encode_function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def _context_window(model: _Model) -> int | None:
    """Several names for one thing; what is loaded counts before what the model was trained for."""
    meta = model.meta or _Meta()
    sizes = (meta.n_ctx, model.max_model_len, model.context_length, model.context_window, model.max_context_length)
    return next((size for size in (*sizes, meta.n_ctx_train) if size), None)
