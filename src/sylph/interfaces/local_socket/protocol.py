"""What may be asked of a server's runtime, and how it is written on the wire: as the methods themselves say."""

import inspect
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from sylph.app import App
from sylph.core import errors
from sylph.core.commands import Command
from sylph.core.errors import ErrorReport, SylphError
from sylph.core.events import Event, EventBody, UnreadableRecord, encode_body
from sylph.core.facts import FACTS_BY_WIRE
from sylph.core.signals import SIGNALS
from sylph.engine.log.hash_chain import sanitize_value
from sylph.engine.runtime.runtime import Runtime

PREFIX: Final = "/own/"
HELLO: Final = "hello"
CALL_TARGETS: Final = {"runtime": Runtime, "app": App}
# What waits for something to happen: nobody waits for it once the server ends, or the one who asked is gone.
WAITING_CALLS: Final = frozenset({"runtime.wait_until_idle", "runtime.wait_for_deliveries"})
CALLS: Final = frozenset(
    {
        *WAITING_CALLS,
        "runtime.create_session",
        "runtime.send",
        "runtime.list_sessions",
        "runtime.find_session",
        "runtime.list_interrupted",
        "runtime.list_undelivered",
        "runtime.list_resumable",
        "runtime.read_events",
        "runtime.list_tasks",
        "runtime.full_output",
        "runtime.fork_session",
        "runtime.context_usage",
        "runtime.erase_secret",
        "runtime.plan_undo",
        "runtime.last_undo",
        "runtime.list_changes",
        "runtime.purge_session",
        "runtime.import_session",
        "app.choose_model",
        "app.budget_balances",
        "app.open_reservations",
    }
)
STREAMS: Final = frozenset({"runtime.watch", "runtime.resume_all", "runtime.export_session"})
# What a process can know by itself: from the files that all processes share, or by reading the log.
LOCAL_METHODS: Final = frozenset(
    {
        *(
            "close",
            "log",
            "sandbox",
            "parts",
            "pid",
            "wait_for_turns",
            "wait_for_server",
            "run_upkeep",
            "adopt_parts",
            "bus",
        ),
        *(
            "peek_state",
            "failed_deliveries",
            "holder_pid",
            "lock_idempotency_key",
            "find_keyed_message",
            "session_jobs",
        ),
        *("verify_sessions", "check_store"),
    }
)
_COMMANDS: Final = {each.__name__: each for each in get_args(Command)}
_BODIES: Final[dict[str, type[EventBody]]] = {**FACTS_BY_WIRE, **{each.wire: each for each in SIGNALS}}


class EventFrame(Struct, frozen=True, array_like=True):
    """An event on its way from one process to another."""

    session: str
    seq: int
    ts: int
    turn: str
    actor: str
    cause: int
    hash: str
    type: str
    data: bytes
    why: str = ""
    """Why it is carried, where it is one that cannot be read."""


class ErrorFrame(Struct, frozen=True):
    """An error on its way: it is raised again as what it was."""

    name: str
    trouble: ErrorReport


class ClientGreeting(Struct, frozen=True, kw_only=True):
    """Who asks: its version, and what its environment says, as digests."""

    version: str
    salt: bytes = b""
    environ: dict[str, bytes] = {}


class ServerGreeting(Struct, frozen=True, kw_only=True):
    """Who answers. `differs` names the variables of whoever asks that the server does not have, or has otherwise."""

    version: str
    pid: int
    url: str
    started: float
    differs: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    """Keys of the configuration whose new values count from its next start on."""


class CallSignature(Struct, frozen=True):
    """The types of one call."""

    parameters: Mapping[str, Any]
    returns: Any


@cache
def call_signature(name: str) -> CallSignature:
    owner, _, method = name.partition(".")
    hints = get_type_hints(getattr(CALL_TARGETS[owner], method))
    gives = hints.pop("return")
    return CallSignature(hints, get_args(gives)[0] if get_origin(gives) is AsyncGenerator else gives)


def encode_arguments(name: str, given: Mapping[str, Any]) -> bytes:
    takes = call_signature(name).parameters
    return encode_value({key: _encode_argument(value, takes[key]) for key, value in given.items()})


def decode_arguments(name: str, data: bytes) -> dict[str, Any]:
    """Raises msgspec.DecodeError where they are not what the method takes."""
    takes = call_signature(name).parameters
    raw = msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
    if strange := set(raw) - set(takes):
        raise msgspec.ValidationError(f"{name} does not take {', '.join(sorted(strange))}")
    function = getattr(CALL_TARGETS[name.partition(".")[0]], name.partition(".")[2])
    given = {key: _decode_argument(value, takes[key]) for key, value in raw.items()}
    try:
        inspect.signature(function).bind(None, **given)
    except TypeError as error:
        raise msgspec.ValidationError(str(error)) from error
    return given


def encode_result(value: Any) -> bytes:
    match value:
        case Event():
            return encode_value(frame_event(value))
        case [Event(), *_]:
            return encode_value([frame_event(event) for event in cast("list[Event]", value)])
        case _:
            return encode_value(value)


def decode_result(name: str, data: bytes) -> Any:
    gives = call_signature(name).returns
    if gives is Event:
        return unframe_event(_decode_msgpack(data, EventFrame))
    if gives == list[Event]:
        return [unframe_event(each) for each in _decode_msgpack(data, list[EventFrame])]
    return _decode_msgpack(data, gives)


def encode_failure(error: SylphError) -> bytes:
    return encode_value(ErrorFrame(type(error).__name__, error.trouble))


def decode_failure(data: bytes) -> SylphError:
    told = _decode_msgpack(data, ErrorFrame)
    kind: Any = getattr(errors, told.name, errors.UserError)
    trouble = told.trouble
    if kind is errors.ProviderError:
        return errors.ProviderError(cast("errors.FailureKind", trouble.kind), trouble.message, next=trouble.next)
    return kind(trouble.message, kind=trouble.kind, details=trouble.details, next=trouble.next)


def frame_event(event: Event) -> EventFrame:
    body = event.body
    why = body.why if isinstance(body, UnreadableRecord) else ""
    try:
        data = encode_body(body)
    except UnicodeEncodeError:
        data = msgspec.json.encode(sanitize_value(msgspec.to_builtins(body)))
    return EventFrame(
        event.session, event.seq, event.ts, event.turn, event.actor, event.cause, event.hash, event.type, data, why
    )


def unframe_event(told: EventFrame) -> Event:
    kind = None if told.why else _BODIES.get(told.type)
    body = msgspec.json.decode(told.data, type=kind) if kind else None
    return Event(
        session=told.session,
        seq=told.seq,
        ts=told.ts,
        body=body or UnreadableRecord(type=told.type, raw=told.data, why=told.why or "unknown type"),
        turn=told.turn,
        actor=told.actor,
        cause=told.cause,
        hash=told.hash,
    )


def encode_value(value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(sanitize_value(msgspec.to_builtins(value, enc_hook=str, builtin_types=(bytes,))))


def decode_value(data: bytes, kind: Any) -> Any:
    return _decode_msgpack(data, kind)


def _encode_argument(value: Any, hint: Any) -> Any:
    if hint == Command:
        return (type(value).__name__, value)
    return list(value) if get_origin(hint) is Iterable else value


def _decode_argument(raw: msgspec.Raw, hint: Any) -> Any:
    if hint == Command:
        name, body = _decode_msgpack(raw, tuple[str, msgspec.Raw])
        if name not in _COMMANDS:
            raise msgspec.ValidationError(f"there is no command {name!r}")
        return _decode_msgpack(body, _COMMANDS[name])
    return _decode_msgpack(raw, list[get_args(hint)[0]] if get_origin(hint) is Iterable else hint)


def _decode_msgpack(data: Any, kind: Any) -> Any:
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_decode_path)


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)
