"""Facts about model calls and compaction."""

from typing import ClassVar

import msgspec

from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.core.messages import Usage


class CompactionMade(Fact, frozen=True, kw_only=True):
    """The model sees this instead of what came before fact `upto`: the person's own `words`, the `ledger` of what was
    done, and a model's `summary`. The originals stay in the log."""

    wire: ClassVar[str] = "compaction.made"
    durable: ClassVar[bool] = True
    upto: int
    summary: str
    words: tuple[str, ...]
    ledger: tuple[str, ...]
    why: str
    chunks: int
    messages: int
    tokens_before: int
    tokens_after: int


class CompactionFailed(Fact, frozen=True, kw_only=True):
    """Summarising did not work; nothing was dropped."""

    wire: ClassVar[str] = "compaction.failed"
    why: str
    trouble: ErrorReport


class ModelRequested(Fact, frozen=True, kw_only=True):
    """A request goes to a model. `digest` is a hash of the prompt's bytes, so that a replay can be held against it.

    `head` are hashes of what never changes in it, the system text and the tools, `tail` is one of its messages;
    `window` is what the model was taken to hold at that time, 0 where nobody knew. Where a budget counts, `reserved`
    micro-dollars were put aside for it. Its answer may have `answer` tokens, where that is known; `limited` tells that
    the service was told so, for the sake of a budget. `chat_only` tells that it got no tools, since it cannot be
    trusted with them.

    `kept` is how many bytes of the last request this one repeats, which a service's cache can have; where that is not
    all of them, `missed` says what changed: `first`, `model`, `system`, `tools`, `compaction`, `retry` or `history`.
    """

    wire: ClassVar[str] = "model.requested"
    model: str
    round: int
    role: str = "main"
    messages: int = 0
    bytes: int = 0
    digest: str = ""
    head: str = ""
    tail: str = ""
    window: int = 0
    kept: int | None = None
    missed: str = ""
    reserved: int | None = None
    answer: int | None = None
    limited: bool = False
    chat_only: bool = False


class ModelResponded(Fact, frozen=True, kw_only=True):
    """A model's whole answer to one request. Its calls follow as `tool.called`."""

    wire: ClassVar[str] = "model.responded"
    model: str
    text: str
    finish: str
    reasoning: str = ""
    calls: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    cost: int | None = None
    ms: int = 0
    first_ms: int = 0
    role: str = "main"
    native: str = ""


class ModelFailed(Fact, frozen=True, kw_only=True):
    """A request did not work. `retry_ms` says when the next try comes; without it there is none.

    Where a budget counts and the service may charge for it all the same, `usage` and `cost` are the most it can be.
    `turn` is the earlier turn in which it was asked, where that is found out only now.
    """

    wire: ClassVar[str] = "model.failed"
    model: str
    trouble: ErrorReport
    attempt: int
    retry_ms: int | None = None
    partial: str = ""
    role: str = "main"
    usage: Usage | None = None
    cost: int | None = None
    turn: str = ""


class ModelFellBack(Fact, frozen=True, kw_only=True):
    """A model did not answer, and another one takes its place until the turn ends, or nobody does (`to` is empty).

    `passed` could not have taken all of it over: the tools, the images, the length.
    """

    wire: ClassVar[str] = "model.fell_back"
    model: str
    to: str
    trouble: ErrorReport
    role: str = "main"
    passed: dict[str, str] = {}
