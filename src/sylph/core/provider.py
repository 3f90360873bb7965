"""The contract with a language model."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Struct, field

from sylph.core.messages import Message, ToolCall, Usage

FinishReason = Literal["stop", "calls", "length", "filtered"]
Effort = Literal["", "none", "low", "medium", "high"]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model sees it; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One question to one model. `system` and `tools` are the byte-stable head, `messages` only ever grow."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    family: str = ""
    """Which prompts share a beginning: the session and its forks. Services that route by a cache key get it."""
    effort: Effort = ""
    """How much to think; empty for what the service does by itself."""
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer's text must follow; None for free text."""
    search: bool = False
    """Whether the service may search the web by itself, where it can."""
    window: int = 0
    """How much the model is taken to hold; 0 where nobody knows. Servers that set it up for us have to be told."""
    image: Callable[[str], bytes | None] = lambda _: None
    """The bytes of a message's image by its digest; None where they are gone."""


class TextChunk(Struct, frozen=True):
    text: str


class ReasoningChunk(Struct, frozen=True):
    text: str


class ArgumentsChunk(Struct, frozen=True):
    """A piece of the arguments of the call number `index`."""

    index: int
    name: str
    text: str


class KeepAlive(Struct, frozen=True):
    """The service sent something that carries nothing: a keep-alive, an empty delta."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """The last thing a stream yields. The calls' ids are the provider's own; the engine gives them its own."""

    text: str
    finish: FinishReason
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    native: str = ""
    """The answer as JSON in the service's own words, where parts of it must go back unchanged (messages.Native)."""


Chunk = TextChunk | ReasoningChunk | ArgumentsChunk | KeepAlive | ModelReply


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What is known of a model. Prices are micro-dollars per million tokens; None is unknown, 0 is free."""

    name: str
    window: int | None = None
    price_in: int | None = None
    price_out: int | None = None
    price_cached: int | None = None
    price_written: int | None = None
    """For input that the service puts into its cache; None where that costs what input costs."""
    above: int | None = None
    """From so many input tokens on a call has other prices, those that follow; None where it has not."""
    above_in: int | None = None
    above_out: int | None = None
    above_cached: int | None = None
    output: int | None = None
    """How many tokens an answer may have at the most."""
    sees: bool | None = None
    """Whether it takes images; None is unknown."""
    calls: bool | None = None
    """Whether it can be trusted with tools; None is unknown, and taken for yes."""


class Provider(Protocol):
    """One service that speaks one wire dialect. It never retries: the gateway does."""

    @property
    def name(self) -> str: ...

    def body(self, request: ModelRequest) -> bytes:
        """The exact bytes that would go out; equal requests give equal bytes."""
        ...

    def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        """Sends `body` once. Raises ProviderError; the last chunk is a Reply."""
        ...

    async def models(self) -> tuple[ModelInfo, ...]:
        """What the service offers now."""
        ...

    def info(self, model: str) -> ModelInfo:
        """What is known of a model without asking anybody."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class LearningProvider(Protocol):
    """A provider that has to find something out about a model before it can put a request into words."""

    async def learn(self, model: str) -> None:
        """Asks the service, once for each model. What it does not tell stays unknown; that is no failure."""
        ...


Providers = Mapping[str, Provider]
