"""Facts about a session itself: where it works, how, and what became of it."""

from typing import ClassVar

from sylph.core.events import Fact
from sylph.core.permission.types import Mode


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
