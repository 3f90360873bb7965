"""What may be asked of a session, by whichever door."""

import msgspec

from sylph.core.facts.turn import InputDelivery
from sylph.core.messages import AnswerFormat, Image
from sylph.core.permission.types import Mode, PermissionRule
from sylph.core.tool import ImageData


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """Say something. While a turn runs it steers that turn, or waits for its end (`follow`)."""

    text: str
    delivery: InputDelivery = "steer"
    key: str = ""
    actor: str = "user"
    dry_run: bool = False
    files: tuple[ImageData, ...] = ()
    """Pictures and documents that go with it."""
    images: tuple[Image, ...] = ()
    """The same, where the session has them already."""
    form: AnswerFormat | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer an `asked`. The first answer counts. `edit` comes with the `arguments` to run instead."""

    id: str
    answer: str
    reason: str = ""
    actor: str = "user"
    arguments: str = ""
    via: str = ""


class Interrupt(msgspec.Struct, frozen=True, kw_only=True):
    """End the running turn now. What steered it and was not heard yet is withdrawn, with `drop` all that waits."""

    reason: str = ""
    drop: bool = False


class Pause(msgspec.Struct, frozen=True):
    """Hold the running turn at its next safe point."""


class Continue(msgspec.Struct, frozen=True):
    """Let a paused turn go on, or pick up a turn that a crash left open."""


class AbandonTurn(msgspec.Struct, frozen=True):
    """Give up a turn that a crash left open: it ends as cancelled, and nothing of it is run."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Run a turn again from its message; without a turn, the last one. The log keeps the old one.

    What was a dry run stays one.
    """

    turn: str = ""
    text: str = ""
    dry_run: bool = False
    key: str = ""
    actor: str = "user"


class Withdraw(msgspec.Struct, frozen=True, kw_only=True):
    """Take back a message that waits."""

    id: str


class Compact(msgspec.Struct, frozen=True):
    """Summarise what is old now, without waiting for the window to fill."""


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    title: str


class SetMode(msgspec.Struct, frozen=True, kw_only=True):
    """Change what may be done without asking. Only a person may loosen it."""

    mode: Mode
    actor: str = "user"


class SetSandbox(msgspec.Struct, frozen=True, kw_only=True):
    """Switch the sandbox of commands on or off. Only a person may switch it off."""

    on: bool
    actor: str = "user"


class SetModel(msgspec.Struct, frozen=True, kw_only=True):
    model: str


class SetBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Give the session a cap of its own in micro-dollars; None takes it back. Only a person may."""

    money: int | None
    actor: str = "user"


class SetRole(msgspec.Struct, frozen=True, kw_only=True):
    """Have another model do the work of a role in this session; an empty one leaves it to the configuration."""

    role: str
    model: str


class RevokeGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Take back something that was allowed for the rest of the session."""

    rule: PermissionRule
    actor: str = "user"


class Delete(msgspec.Struct, frozen=True):
    """Put the session into the trash."""


class Restore(msgspec.Struct, frozen=True):
    """Take the session out of the trash."""


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    """Put the session aside, so that lists leave it out; or take it up again."""

    on: bool = True


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """Keep the session at hand; or no longer."""

    on: bool = True


class MarkSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Say that a person has seen the session up to a fact."""

    upto: int


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """Put files back as they were before a turn or a call, and before all that came after it.

    Without one: before the last turn that changed something. What somebody else changed since is left, unless by
    `force`. `redo` takes the last undo back. An undo that a crash has cut off is finished first, and that is all.
    """

    turn: str = ""
    call: str = ""
    files: tuple[str, ...] = ()
    force: bool = False
    redo: bool = False
    actor: str = "user"


Command = (
    Send
    | Answer
    | Interrupt
    | Pause
    | Continue
    | AbandonTurn
    | Retry
    | Withdraw
    | Compact
    | Rename
    | SetMode
    | SetSandbox
    | SetModel
    | SetBudget
    | SetRole
    | RevokeGrant
    | Delete
    | Restore
    | Archive
    | Pin
    | MarkSeen
    | Undo
)
