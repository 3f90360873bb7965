"""Facts about tool calls and about questions to a person."""

from typing import ClassVar, Literal

from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.core.messages import Image
from sylph.core.permission.types import NO_ACCESS, AccessSummary, Decision, Effect, PermissionRule, Risk

RecoveryMethod = Literal["pure", "by_content", "by_key", "by_probe", "unknowable"]


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
