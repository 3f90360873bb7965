"""Every signal: what is shown while it happens and never written down."""

from typing import ClassVar

from sylph.core.errors import Trouble
from sylph.core.events import Signal


class TextDelta(Signal, frozen=True, kw_only=True):
    """The next piece of the answer."""

    wire: ClassVar[str] = "delta.text"
    text: str


class ReasoningDelta(Signal, frozen=True, kw_only=True):
    """The next piece of the model's reasoning."""

    wire: ClassVar[str] = "delta.reasoning"
    text: str


class ArgsDelta(Signal, frozen=True, kw_only=True):
    """The next piece of a call's arguments, while the model still writes them."""

    wire: ClassVar[str] = "delta.args"
    index: int
    name: str
    text: str


class ToolOutput(Signal, frozen=True, kw_only=True):
    """What a running call prints."""

    wire: ClassVar[str] = "tool.output"
    call: str
    text: str


class Progress(Signal, frozen=True, kw_only=True):
    """Something takes its time; this says what."""

    wire: ClassVar[str] = "progress"
    text: str


class SessionFailed(Signal, frozen=True, kw_only=True):
    """The session cannot go on: its log cannot be written, so this cannot be a fact."""

    wire: ClassVar[str] = "session.failed"
    trouble: Trouble


class SessionPurged(Signal, frozen=True, kw_only=True):
    """The session was removed for good: nothing of it is there any more, and nothing follows."""

    wire: ClassVar[str] = "session.purged"


class Lagged(Signal, frozen=True, kw_only=True):
    """This reader was too slow: `missed` signals were dropped. Facts never are; they follow from the log."""

    wire: ClassVar[str] = "lagged"
    missed: int


SIGNALS: tuple[type[Signal], ...] = (
    TextDelta,
    ReasoningDelta,
    ArgsDelta,
    ToolOutput,
    Progress,
    SessionFailed,
    SessionPurged,
    Lagged,
)
