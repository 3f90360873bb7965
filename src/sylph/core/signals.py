"""Every signal: what is shown while it happens and never written down."""

from typing import ClassVar

from msgspec import Struct

from sylph.core.errors import ErrorReport
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


class PartialCall(Struct, frozen=True, kw_only=True):
    """The arguments of a call, as far as the model has written them."""

    name: str
    text: str


class LiveSnapshot(Signal, frozen=True, kw_only=True):
    """All that is being written, for a reader that came late or has missed some: it takes the place of all pieces
    before it. `outputs` is what each running call has printed, or the end of that.
    """

    wire: ClassVar[str] = "live"
    text: str = ""
    reasoning: str = ""
    calls: tuple[PartialCall, ...] = ()
    outputs: dict[str, str] = {}
    progress: str = ""


class SessionFailed(Signal, frozen=True, kw_only=True):
    """The session cannot go on: its log cannot be written, so this cannot be a fact."""

    wire: ClassVar[str] = "session.failed"
    trouble: ErrorReport


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
    LiveSnapshot,
    SessionFailed,
    SessionPurged,
    Lagged,
)
