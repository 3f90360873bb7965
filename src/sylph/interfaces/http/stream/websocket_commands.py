"""What a WebSocket takes: JSON objects, told apart by their `type`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.core.facts.turn import InputDelivery
from sylph.core.permission.types import Mode
from sylph.interfaces.http.hub.messages import After, Name

Ref = Annotated[str, Meta(max_length=100, description="Comes back with the answer.")]
Words = Annotated[str, Meta(max_length=1_000_000)]


class WsCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What a client may ask for over a WebSocket."""

    id: Ref = ""


class WsPing(WsCommand, frozen=True, kw_only=True, tag="ping"):
    """Answered by a `pong`."""


class WsWatchChanges(WsCommand, frozen=True, kw_only=True, tag="notes"):
    """Whether to be told of changes to all sessions."""

    on: bool


class WsSessionCommand(WsCommand, frozen=True, kw_only=True):
    session: Name


class WsSubscribe(WsSessionCommand, frozen=True, kw_only=True, tag="subscribe"):
    """Every event of a session, from the fact behind `after` on."""

    after: After = 0


class WsUnsubscribe(WsSessionCommand, frozen=True, kw_only=True, tag="unsubscribe"):
    pass


class WsSend(WsSessionCommand, frozen=True, kw_only=True, tag="send"):
    """Say something; the same `key` twice is one message."""

    text: Words
    delivery: InputDelivery = "steer"
    key: Annotated[str, Meta(max_length=200)] = ""
    dry_run: bool = False


class WsAnswer(WsSessionCommand, frozen=True, kw_only=True, tag="answer"):
    """Answer what was asked. `edit` comes with the `arguments` to run instead."""

    question: Name
    answer: Words
    reason: Words = ""
    arguments: dict[str, Any] | None = None


class WsInterrupt(WsSessionCommand, frozen=True, kw_only=True, tag="interrupt"):
    """End the running turn; what it has not heard is withdrawn, and with `drop` what waits for its end."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
    queue: Literal["keep", "drop"] = "keep"


class WsPause(WsSessionCommand, frozen=True, kw_only=True, tag="pause"):
    pass


class WsResume(WsSessionCommand, frozen=True, kw_only=True, tag="resume"):
    """Let a paused turn go on, or one that a crash left open."""


class WsRetry(WsSessionCommand, frozen=True, kw_only=True, tag="retry"):
    """Run a turn again; the last one, if none is named."""

    turn: Annotated[str, Meta(max_length=100)] = ""
    text: Words = ""
    dry_run: bool = False


class WsCompact(WsSessionCommand, frozen=True, kw_only=True, tag="compact"):
    pass


class WsWithdraw(WsSessionCommand, frozen=True, kw_only=True, tag="withdraw"):
    """Take back a message that waits."""

    input: Name


class WsSee(WsSessionCommand, frozen=True, kw_only=True, tag="see"):
    """Say that a person has seen the session up to a fact."""

    upto: Annotated[int, Meta(ge=1, le=2**53)]


class WsRename(WsSessionCommand, frozen=True, kw_only=True, tag="rename"):
    title: Annotated[str, Meta(max_length=500)]


class WsSetMode(WsSessionCommand, frozen=True, kw_only=True, tag="set_mode"):
    mode: Mode


class WsSetModel(WsSessionCommand, frozen=True, kw_only=True, tag="set_model"):
    model: Name


ClientMessage = (
    WsPing
    | WsWatchChanges
    | WsSubscribe
    | WsUnsubscribe
    | WsSend
    | WsAnswer
    | WsInterrupt
    | WsPause
    | WsResume
    | WsRetry
    | WsCompact
    | WsWithdraw
    | WsSee
    | WsRename
    | WsSetMode
    | WsSetModel
)
client_decoder = msgspec.json.Decoder(ClientMessage)
