"""Every fact a session's log can hold, declared once; references, schemas and stream names are made from this."""

from typing import ClassVar, Literal

import msgspec

from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.core.facts.budget import BUDGET_FACTS
from sylph.core.facts.delivery import DELIVERY_FACTS
from sylph.core.facts.file_change import FILE_FACTS
from sylph.core.messages import AnswerFormat, Image, Usage
from sylph.core.permission.types import NO_ACCESS, AccessSummary, Decision, Effect, Mode, PermissionRule, Risk

TurnOutcome = Literal["finished", "failed", "cancelled", "budget", "interrupted"]
InputDelivery = Literal["start", "steer", "follow"]
RecoveryMethod = Literal["pure", "by_content", "by_key", "by_probe", "unknowable"]
StepStatus = Literal["pending", "doing", "done", "dropped"]


class SessionCreated(Fact, frozen=True, kw_only=True):
    """The first fact of every session: where it works, how, and with what. Sessions of one `label` share a budget.

    `by` names who made it where that was somebody at the server without `admin`: their sessions open no folder.
    """

    wire: ClassVar[str] = "session.created"
    durable: ClassVar[bool] = True
    workspace: str
    model: str
    mode: Mode
    title: str = ""
    prompt: int = 1
    sylph: str = ""
    sandbox: bool = True
    label: str = ""
    by: str = ""


class SessionRenamed(Fact, frozen=True, kw_only=True):
    """The session has a new title."""

    wire: ClassVar[str] = "session.renamed"
    title: str


class SessionForked(Fact, frozen=True, kw_only=True):
    """All before this was copied from `parent`, up to and with its fact `at`; from here on the two differ."""

    wire: ClassVar[str] = "session.forked"
    durable: ClassVar[bool] = True
    parent: str
    at: int
    root: str


class SessionDeleted(Fact, frozen=True, kw_only=True):
    """The session is in the trash: not listed, still readable, restorable."""

    wire: ClassVar[str] = "session.deleted"
    durable: ClassVar[bool] = True


class SessionRestored(Fact, frozen=True, kw_only=True):
    """The session is back from the trash."""

    wire: ClassVar[str] = "session.restored"
    durable: ClassVar[bool] = True


class SessionArchived(Fact, frozen=True, kw_only=True):
    """The session was put aside, or taken up again: lists leave it out while it is."""

    wire: ClassVar[str] = "session.archived"
    archived: bool


class SessionPinned(Fact, frozen=True, kw_only=True):
    """The session is kept at hand, or no longer."""

    wire: ClassVar[str] = "session.pinned"
    pinned: bool


class SessionSeen(Fact, frozen=True, kw_only=True):
    """A person has seen the session up to and with its fact `upto`."""

    wire: ClassVar[str] = "session.seen"
    upto: int


class SessionErased(Fact, frozen=True, kw_only=True):
    """Something secret was taken out of earlier facts. Their commitments stay, so the chain still holds.

    `facts` and `blobs` vouch for what stands there now: the hash of the new data by number, of the new output by name.
    """

    wire: ClassVar[str] = "session.erased"
    durable: ClassVar[bool] = True
    facts: dict[str, str]
    blobs: dict[str, str] = {}
    why: str = ""


class SessionMode(Fact, frozen=True, kw_only=True):
    """The permission mode changed."""

    wire: ClassVar[str] = "session.mode"
    durable: ClassVar[bool] = True
    mode: Mode
    was: Mode


class SessionSandbox(Fact, frozen=True, kw_only=True):
    """The user has switched the sandbox of this session's commands off, or on again."""

    wire: ClassVar[str] = "session.sandbox"
    durable: ClassVar[bool] = True
    on: bool


class SessionModel(Fact, frozen=True, kw_only=True):
    """The session thinks with another model from now on."""

    wire: ClassVar[str] = "session.model"
    model: str
    was: str


class SessionRole(Fact, frozen=True, kw_only=True):
    """Another model does the work of a role from now on; an empty one leaves it to the configuration."""

    wire: ClassVar[str] = "session.role"
    role: str
    model: str
    was: str = ""


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


class ToolCalled(Fact, frozen=True, kw_only=True):
    """The model asks for a call. `arguments` is its JSON as it came."""

    wire: ClassVar[str] = "tool.called"
    call: str
    name: str
    arguments: str


class GrantRevoked(Fact, frozen=True, kw_only=True):
    """What was allowed for the rest of the session is so no more."""

    wire: ClassVar[str] = "grant.revoked"
    durable: ClassVar[bool] = True
    rule: PermissionRule


class ToolDecided(Fact, frozen=True, kw_only=True):
    """Whether a call may run, who said so, and why.

    `digest` binds it to the arguments, and `reach` tells what they would touch; `arguments` is what the person made of
    them, where they did. `grants` was allowed for the rest of the session, `remembered` for good.
    """

    wire: ClassVar[str] = "tool.decided"
    call: str
    decision: Decision
    reason: str
    by: str
    effect: Effect
    risk: Risk
    digest: str = ""
    reach: AccessSummary = NO_ACCESS
    arguments: str = ""
    grants: tuple[PermissionRule, ...] = ()
    remembered: tuple[PermissionRule, ...] = ()


class ToolStarted(Fact, frozen=True, kw_only=True):
    """A call runs from here on: on the disk before its effect can be.

    `recourse` tells how the outcome can be learned after a crash, `foreseen` what it will be recognised by.
    """

    wire: ClassVar[str] = "tool.started"
    durable: ClassVar[bool] = True
    call: str
    effect: Effect
    recourse: RecoveryMethod
    foreseen: dict[str, str] = {}


class ToolFinished(Fact, frozen=True, kw_only=True):
    """What a call came to. `output` is what the model sees; `whole` names the full output where that was longer.

    `ms` is the time it ran, waiting for a person not counted; a `dry` call was only shown. `images` are kept like whole
    outputs.
    """

    wire: ClassVar[str] = "tool.finished"
    call: str
    ok: bool
    output: str
    exit: int | None = None
    trouble: ErrorReport | None = None
    ms: int = 0
    whole: str = ""
    whole_bytes: int = 0
    dry: bool = False
    images: tuple[Image, ...] = ()

    @property
    def blobs(self) -> tuple[str, ...]:
        """The names of all that is kept beside this fact."""
        return (*((self.whole,) if self.whole else ()), *(image.digest for image in self.images))


class Asked(Fact, frozen=True, kw_only=True):
    """The turn waits for a person. The answer comes back as a command, then as the fact `answered`.

    An approval can be about several `calls` of one kind. `grants` is what its choice `session` would allow, `rules`
    what `always` would remember; `effect`, `risk` and `reach` tell what the call would do.
    """

    wire: ClassVar[str] = "asked"
    durable: ClassVar[bool] = True
    id: str
    kind: Literal["approval", "question"]
    question: str
    choices: tuple[str, ...] = ()
    free: bool = False
    call: str = ""
    detail: str = ""
    calls: tuple[str, ...] = ()
    effect: Effect | None = None
    risk: Risk | None = None
    reach: AccessSummary = NO_ACCESS
    grants: tuple[PermissionRule, ...] = ()
    rules: tuple[PermissionRule, ...] = ()


class Answered(Fact, frozen=True, kw_only=True):
    """A person's answer, or that none could be had (`by` is `nobody`). `arguments` is what they made of a call's.

    `via` is the name of the credential it came with, where that was not the owner's own terminal.
    """

    wire: ClassVar[str] = "answered"
    durable: ClassVar[bool] = True
    id: str
    answer: str
    reason: str = ""
    by: str = ""
    arguments: str = ""
    via: str = ""


class PlanStep(msgspec.Struct, frozen=True):
    """One line of the plan."""

    text: str
    status: StepStatus = "pending"


class PlanUpdated(Fact, frozen=True, kw_only=True):
    """The agent's checklist, whole, as it is now."""

    wire: ClassVar[str] = "plan.updated"
    steps: tuple[PlanStep, ...]


FACTS: tuple[type[Fact], ...] = (
    SessionCreated,
    SessionRenamed,
    SessionForked,
    SessionDeleted,
    SessionRestored,
    SessionArchived,
    SessionPinned,
    SessionSeen,
    SessionErased,
    SessionMode,
    SessionSandbox,
    SessionModel,
    SessionRole,
    InputReceived,
    InputDelivered,
    InputCancelled,
    TurnStarted,
    TurnResumed,
    TurnEnded,
    StateChanged,
    HistoryRewound,
    ContextAdded,
    CompactionMade,
    CompactionFailed,
    ModelRequested,
    ModelResponded,
    ModelFailed,
    ModelFellBack,
    ToolCalled,
    ToolDecided,
    GrantRevoked,
    ToolStarted,
    ToolFinished,
    Asked,
    Answered,
    PlanUpdated,
    *FILE_FACTS,
    *DELIVERY_FACTS,
    *BUDGET_FACTS,
)

FACTS_BY_WIRE: dict[str, type[Fact]] = {fact.wire: fact for fact in FACTS}
