"""What streams and WebSockets say besides the log's events: JSON objects, told apart by their `type`."""

from typing import Annotated

from msgspec import Meta, Struct

from sylph.engine.folds.session_list import build_list_item
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.http.kit.problem_details import Problem
from sylph.interfaces.http.views.session_view import SessionQuestion, SessionRow, question_view, row_fields

# Sessions of which one client gets every event.
MAX_SESSIONS = 50

Name = Annotated[str, Meta(min_length=1, max_length=100)]
After = Annotated[int, Meta(ge=0, le=2**53, description="Only facts after this number.")]


class StreamMessage(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something a stream says that is not in the log."""


class StreamOpened(StreamMessage, frozen=True, kw_only=True, tag="stream.opened"):
    """The stream stands. `sessions` are those it follows, each with the last fact the client has.

    `started` is when the server was, in milliseconds since 1970: another time is another process.
    """

    client: str
    sessions: dict[str, int]
    beat_ms: int
    version: str
    started: int


class StreamSubscribed(StreamMessage, frozen=True, kw_only=True, tag="stream.subscribed"):
    """The stream follows these sessions from here on."""

    sessions: dict[str, int]


class StreamReset(StreamMessage, frozen=True, kw_only=True, tag="stream.reset"):
    """The client's place `after` is not in the log, which ends at `seq`: forget the session, all of it follows."""

    session: str
    after: int
    seq: int


class StreamSessionGone(StreamMessage, frozen=True, kw_only=True, tag="stream.gone"):
    """There is no such session, or no longer: nothing of it follows."""

    session: str


class SessionChangedMessage(SessionRow, frozen=True, kw_only=True, tag_field="type", tag="session.changed"):
    """What a session is now, as in the list of sessions, and what it asks; at most about once a second for each."""

    questions: tuple[SessionQuestion, ...]


class SessionRemovedMessage(StreamMessage, frozen=True, kw_only=True, tag="session.removed"):
    """A session was removed for good."""

    id: str


class ConfigChangedMessage(StreamMessage, frozen=True, kw_only=True, tag="config.changed"):
    """The configuration, the keys or what is wrong with them changed: `GET /api/v1/config` tells what counts now."""


class StreamHeartbeat(StreamMessage, frozen=True, kw_only=True, tag="beat"):
    """Nothing happens, and the server lives."""

    ts: int


class WsAck(StreamMessage, frozen=True, kw_only=True, tag="ack", omit_defaults=True):
    """The command `id` was taken. `session` is the whole id of the one it was for, `input` the id a message is kept
    under, `seq` the end of a session's log.
    """

    id: str
    session: str = ""
    input: str = ""
    seq: int = 0


class WsProblem(StreamMessage, frozen=True, kw_only=True, tag="problem"):
    """The command `id` was not taken; without an id: a message that could not be read."""

    id: str
    problem: Problem


class WsPong(StreamMessage, frozen=True, kw_only=True, tag="pong"):
    id: str


ServerMessage = (
    StreamOpened
    | StreamSubscribed
    | StreamReset
    | StreamSessionGone
    | SessionChangedMessage
    | SessionRemovedMessage
    | ConfigChangedMessage
    | StreamHeartbeat
    | WsAck
    | WsProblem
    | WsPong
)


def describe_session_change(runtime: Runtime, id: str, summary: SessionState) -> SessionChangedMessage:
    asked = tuple(question_view(summary, asked) for asked in summary.asked.values())
    return SessionChangedMessage(**row_fields(runtime, build_list_item(id, summary)), questions=asked)
