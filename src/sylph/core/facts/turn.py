"""Facts about messages, turns and plans."""

from typing import ClassVar, Literal

import msgspec

from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.core.messages import AnswerFormat, Image

TurnOutcome = Literal["finished", "failed", "cancelled", "budget", "interrupted"]


InputDelivery = Literal["start", "steer", "follow"]


StepStatus = Literal["pending", "doing", "done", "dropped"]


class InputReceived(Fact, frozen=True, kw_only=True):
    """Somebody said something. Once this is written the message is kept; `key` makes a repeated send one message.

    The turn of a `dry_run` shows what it would do and changes nothing. `form` is how the answer is wanted.
    """

    wire: ClassVar[str] = "input.received"
    durable: ClassVar[bool] = True
    id: str
    text: str
    delivery: InputDelivery = "start"
    key: str = ""
    dry_run: bool = False
    images: tuple[Image, ...] = ()
    form: AnswerFormat | None = None

    @property
    def blobs(self) -> tuple[str, ...]:
        """What is kept beside the log for it."""
        return tuple(image.digest for image in self.images)


class InputDelivered(Fact, frozen=True, kw_only=True):
    """A steering message reached the running turn: from here on the model sees it."""

    wire: ClassVar[str] = "input.delivered"
    id: str


class InputCancelled(Fact, frozen=True, kw_only=True):
    """A waiting message was taken back before it was delivered."""

    wire: ClassVar[str] = "input.cancelled"
    durable: ClassVar[bool] = True
    id: str


class TurnStarted(Fact, frozen=True, kw_only=True):
    """A turn begins with the message `input`. A retry names the turn it replaces."""

    wire: ClassVar[str] = "turn.started"
    input: str
    profile: str = "chat"
    retry_of: str = ""


class TurnResumed(Fact, frozen=True, kw_only=True):
    """The process died in the middle of this turn; it goes on from the log. `attempt` counts these."""

    wire: ClassVar[str] = "turn.resumed"
    durable: ClassVar[bool] = True
    attempt: int
    open_calls: tuple[str, ...] = ()


class TurnEnded(Fact, frozen=True, kw_only=True):
    """The one end of a turn."""

    wire: ClassVar[str] = "turn.ended"
    durable: ClassVar[bool] = True
    outcome: TurnOutcome
    rounds: int = 0
    ms: int = 0
    trouble: ErrorReport | None = None


class StateChanged(Fact, frozen=True, kw_only=True):
    """The session went from one state to another; `event` is the edge it took."""

    wire: ClassVar[str] = "state.changed"
    to: str
    was: str
    event: str


class HistoryRewound(Fact, frozen=True, kw_only=True):
    """The model no longer sees what came from fact `to` on. Nothing is deleted: the log keeps it all."""

    wire: ClassVar[str] = "history.rewound"
    to: int
    why: str = ""


class ContextAdded(Fact, frozen=True, kw_only=True):
    """Something Sylph tells the model: the workspace, the date, a mode change. Appended, never edited into the head."""

    wire: ClassVar[str] = "context.added"
    topic: str
    text: str


class PlanStep(msgspec.Struct, frozen=True):
    """One line of the plan."""

    text: str
    status: StepStatus = "pending"


class PlanUpdated(Fact, frozen=True, kw_only=True):
    """The agent's checklist, whole, as it is now."""

    wire: ClassVar[str] = "plan.updated"
    steps: tuple[PlanStep, ...]
