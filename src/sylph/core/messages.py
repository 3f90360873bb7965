"""What a model is shown and what it says, in no vendor's words."""

from typing import Literal

import msgspec


class ToolCall(msgspec.Struct, frozen=True):
    """A call the model asks for. `arguments` is its JSON, byte for byte as it came."""

    id: str
    name: str
    arguments: str


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens as the provider counted them; 0 where it did not say."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """How much of the input came out of the service's cache."""
    reasoning: int = 0
    written: int = 0
    """How much of the input was put into the service's cache, where that has a price of its own."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            self.written + other.written,
        )


class Image(msgspec.Struct, frozen=True, omit_defaults=True):
    """A picture or a document (`media` tells which) by its name: the bytes are kept with the log under `digest`."""

    digest: str
    media: str
    bytes: int = 0
    name: str = ""
    """What it is a picture of, for the model and the person."""


class AnswerFormat(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the answer to a message is wanted, where it matters."""

    schema: str = ""
    """The JSON Schema that its text must follow, as JSON."""
    tokens: int | None = None
    """How long each answer of the model may be."""
    effort: str = ""
    """How much to think."""


class NativeItems(msgspec.Struct, frozen=True):
    """An answer as its model's service told it, reasoning with its signatures included.

    Sent back byte for byte to the same `provider/model`; for any other one it does not exist.
    """

    model: str
    items: str


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of the prompt. A `tool` message answers the call `call`."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    reasoning: str = ""
    images: tuple[Image, ...] = ()
    native: NativeItems | None = None
