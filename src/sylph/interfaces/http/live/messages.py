"""What streams say besides the log's events, and what a WebSocket takes: JSON objects, told apart by their `type`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.core.facts import Delivery, Mode
from sylph.engine.cards import card_of
from sylph.engine.runtime import Runtime
from sylph.engine.summary import Summary
from sylph.interfaces.http.problems import Problem
from sylph.interfaces.http.session_view import Question, SessionRow, question, shown

# Sessions of which one client gets every event.
MOST = 50

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Ref = Annotated[str, Meta(max_length=100, description="Comes back with the answer.")]
After = Annotated[int, Meta(ge=0, le=2**53, description="Only facts after this number.")]
Words = Annotated[str, Meta(max_length=1_000_000)]


class Message(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something a stream says that is not in the log."""


class Opened(Message, frozen=True, kw_only=True, tag="stream.opened"):
    """The stream stands. `sessions` are those it follows, each with the last fact the client has.

    `started` is when the server was, in milliseconds since 1970: another time is another process.
    """

    client: str
    sessions: dict[str, int]
    beat_ms: int
    version: str
    started: int


class Subscribed(Message, frozen=True, kw_only=True, tag="stream.subscribed"):
    """The stream follows these sessions from here on."""

    sessions: dict[str, int]


class Reset(Message, frozen=True, kw_only=True, tag="stream.reset"):
    """The client's place `after` is not in the log, which ends at `seq`: forget the session, all of it follows."""

    session: str
    after: int
    seq: int


class Gone(Message, frozen=True, kw_only=True, tag="stream.gone"):
    """There is no such session, or no longer: nothing of it follows."""

    session: str


class Changed(SessionRow, frozen=True, kw_only=True, tag_field="type", tag="session.changed"):
    """What a session is now, as in the list of sessions, and what it asks; at most about once a second for each."""

    questions: tuple[Question, ...]


class Removed(Message, frozen=True, kw_only=True, tag="session.removed"):
    """A session was removed for good."""

    id: str


class Configured(Message, frozen=True, kw_only=True, tag="config.changed"):
    """The configuration, the keys or what is wrong with them changed: `GET /api/v1/config` tells what counts now."""


class Beat(Message, frozen=True, kw_only=True, tag="beat"):
    """Nothing happens, and the server lives."""

    ts: int


class Ack(Message, frozen=True, kw_only=True, tag="ack", omit_defaults=True):
    """The command `id` was taken. `session` is the whole id of the one it was for, `input` the id a message is kept
    under, `seq` the end of a session's log.
    """

    id: str
    session: str = ""
    input: str = ""
    seq: int = 0


class Refused(Message, frozen=True, kw_only=True, tag="problem"):
    """The command `id` was not taken; without an id: a message that could not be read."""

    id: str
    problem: Problem


class Pong(Message, frozen=True, kw_only=True, tag="pong"):
    id: str


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What a client may ask for over a WebSocket."""

    id: Ref = ""


class Ping(Order, frozen=True, kw_only=True, tag="ping"):
    """Answered by a `pong`."""


class Notes(Order, frozen=True, kw_only=True, tag="notes"):
    """Whether to be told of changes to all sessions."""

    on: bool


class OfSession(Order, frozen=True, kw_only=True):
    session: Name


class Subscribe(OfSession, frozen=True, kw_only=True, tag="subscribe"):
    """Every event of a session, from the fact behind `after` on."""

    after: After = 0


class Unsubscribe(OfSession, frozen=True, kw_only=True, tag="unsubscribe"):
    pass


class Say(OfSession, frozen=True, kw_only=True, tag="send"):
    """Say something; the same `key` twice is one message."""

    text: Words
    delivery: Delivery = "steer"
    key: Annotated[str, Meta(max_length=200)] = ""
    dry_run: bool = False


class Reply(OfSession, frozen=True, kw_only=True, tag="answer"):
    """Answer what was asked. `edit` comes with the `arguments` to run instead."""

    question: Name
    answer: Words
    reason: Words = ""
    arguments: dict[str, Any] | None = None


class Interrupt(OfSession, frozen=True, kw_only=True, tag="interrupt"):
    """End the running turn; what it has not heard is withdrawn, and with `drop` what waits for its end."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
    queue: Literal["keep", "drop"] = "keep"


class Pause(OfSession, frozen=True, kw_only=True, tag="pause"):
    pass


class Resume(OfSession, frozen=True, kw_only=True, tag="resume"):
    """Let a paused turn go on, or one that a crash left open."""


class Retry(OfSession, frozen=True, kw_only=True, tag="retry"):
    """Run a turn again; the last one, if none is named."""

    turn: Annotated[str, Meta(max_length=100)] = ""
    text: Words = ""
    dry_run: bool = False


class Compact(OfSession, frozen=True, kw_only=True, tag="compact"):
    pass


class Withdraw(OfSession, frozen=True, kw_only=True, tag="withdraw"):
    """Take back a message that waits."""

    input: Name


class See(OfSession, frozen=True, kw_only=True, tag="see"):
    """Say that a person has seen the session up to a fact."""

    upto: Annotated[int, Meta(ge=1, le=2**53)]


class Rename(OfSession, frozen=True, kw_only=True, tag="rename"):
    title: Annotated[str, Meta(max_length=500)]


class SetMode(OfSession, frozen=True, kw_only=True, tag="set_mode"):
    mode: Mode


class SetModel(OfSession, frozen=True, kw_only=True, tag="set_model"):
    model: Name


Said = Opened | Subscribed | Reset | Gone | Changed | Removed | Configured | Beat | Ack | Refused | Pong
Heard = (
    Ping
    | Notes
    | Subscribe
    | Unsubscribe
    | Say
    | Reply
    | Interrupt
    | Pause
    | Resume
    | Retry
    | Compact
    | Withdraw
    | See
    | Rename
    | SetMode
    | SetModel
)
heard = msgspec.json.Decoder(Heard)


def changed(runtime: Runtime, id: str, summary: Summary) -> Changed:
    asked = tuple(question(summary, asked) for asked in summary.asked.values())
    return Changed(**shown(runtime, card_of(id, summary)), questions=asked)
