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
from sylph.core.errors import SylphError, Trouble
from sylph.core.events import Body, Carried, Event, data_of
from sylph.core.facts import BY_WIRE
from sylph.core.signals import SIGNALS
from sylph.engine.runtime import Runtime
from sylph.engine.seal import tidy_value

PREFIX: Final = "/own/"
HELLO: Final = "hello"
OWNERS: Final = {"runtime": Runtime, "app": App}
# What waits for something to happen: nobody waits for it once the server ends, or the one who asked is gone.
WAITING: Final = frozenset({"runtime.settled", "runtime.tried"})
CALLS: Final = frozenset(
    {
        *WAITING,
        "runtime.create",
        "runtime.send",
        "runtime.sessions",
        "runtime.find",
        "runtime.interrupted",
        "runtime.undelivered",
        "runtime.resumable",
        "runtime.read",
        "runtime.tasks",
        "runtime.whole",
        "runtime.fork",
        "runtime.context",
        "runtime.erase",
        "runtime.plan_undo",
        "runtime.last_undo",
        "runtime.changes",
        "runtime.purge",
        "runtime.import_",
        "app.choose",
        "app.budgets",
        "app.put_aside",
    }
)
STREAMS: Final = frozenset({"runtime.watch", "runtime.resume_all", "runtime.export"})
# What a process can know by itself: from the files that all processes share, or by reading the log.
LOCAL: Final = frozenset(
    {
        *("close", "log", "sandbox", "parts", "pid", "rest", "back", "tidy", "adopt", "bus", "glance"),
        *("given_up", "holder", "sole", "message", "jobs", "verify", "checkup"),
    }
)
_COMMANDS: Final = {each.__name__: each for each in get_args(Command)}
_BODIES: Final[dict[str, type[Body]]] = {**BY_WIRE, **{each.wire: each for each in SIGNALS}}


class Passed(Struct, frozen=True, array_like=True):
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


class Failure(Struct, frozen=True):
    """An error on its way: it is raised again as what it was."""

    name: str
    trouble: Trouble


class Greeting(Struct, frozen=True, kw_only=True):
    """Who asks: its version, and what its environment says, as digests."""

    version: str
    salt: bytes = b""
    environ: dict[str, bytes] = {}


class Hello(Struct, frozen=True, kw_only=True):
    """Who answers. `differs` names the variables of whoever asks that the server does not have, or has otherwise."""

    version: str
    pid: int
    url: str
    started: float
    differs: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    """Keys of the configuration whose new values count from its next start on."""


class Shape(Struct, frozen=True):
    """The types of one call."""

    takes: Mapping[str, Any]
    gives: Any


@cache
def shape(name: str) -> Shape:
    owner, _, method = name.partition(".")
    hints = get_type_hints(getattr(OWNERS[owner], method))
    gives = hints.pop("return")
    return Shape(hints, get_args(gives)[0] if get_origin(gives) is AsyncGenerator else gives)


def arguments(name: str, given: Mapping[str, Any]) -> bytes:
    takes = shape(name).takes
    return encode({key: _outward(value, takes[key]) for key, value in given.items()})


def read_arguments(name: str, data: bytes) -> dict[str, Any]:
    """Raises msgspec.DecodeError where they are not what the method takes."""
    takes = shape(name).takes
    raw = msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
    if strange := set(raw) - set(takes):
        raise msgspec.ValidationError(f"{name} does not take {', '.join(sorted(strange))}")
    function = getattr(OWNERS[name.partition(".")[0]], name.partition(".")[2])
    given = {key: _inward(value, takes[key]) for key, value in raw.items()}
    try:
        inspect.signature(function).bind(None, **given)
    except TypeError as error:
        raise msgspec.ValidationError(str(error)) from error
    return given


def result(value: Any) -> bytes:
    match value:
        case Event():
            return encode(passed(value))
        case [Event(), *_]:
            return encode([passed(event) for event in cast("list[Event]", value)])
        case _:
            return encode(value)


def read_result(name: str, data: bytes) -> Any:
    gives = shape(name).gives
    if gives is Event:
        return event_of(_decode(data, Passed))
    if gives == list[Event]:
        return [event_of(each) for each in _decode(data, list[Passed])]
    return _decode(data, gives)


def failure(error: SylphError) -> bytes:
    return encode(Failure(type(error).__name__, error.trouble))


def read_failure(data: bytes) -> SylphError:
    told = _decode(data, Failure)
    kind: Any = getattr(errors, told.name, errors.UserError)
    trouble = told.trouble
    if kind is errors.ProviderError:
        return errors.ProviderError(cast("errors.FailureKind", trouble.kind), trouble.message, next=trouble.next)
    return kind(trouble.message, kind=trouble.kind, details=trouble.details, next=trouble.next)


def passed(event: Event) -> Passed:
    body = event.body
    why = body.why if isinstance(body, Carried) else ""
    try:
        data = data_of(body)
    except UnicodeEncodeError:
        data = msgspec.json.encode(tidy_value(msgspec.to_builtins(body)))
    return Passed(
        event.session, event.seq, event.ts, event.turn, event.actor, event.cause, event.hash, event.type, data, why
    )


def event_of(told: Passed) -> Event:
    kind = None if told.why else _BODIES.get(told.type)
    body = msgspec.json.decode(told.data, type=kind) if kind else None
    return Event(
        session=told.session,
        seq=told.seq,
        ts=told.ts,
        body=body or Carried(type=told.type, raw=told.data, why=told.why or "unknown type"),
        turn=told.turn,
        actor=told.actor,
        cause=told.cause,
        hash=told.hash,
    )


def encode(value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(tidy_value(msgspec.to_builtins(value, enc_hook=str, builtin_types=(bytes,))))


def decode_as(data: bytes, kind: Any) -> Any:
    return _decode(data, kind)


def _outward(value: Any, hint: Any) -> Any:
    if hint == Command:
        return (type(value).__name__, value)
    return list(value) if get_origin(hint) is Iterable else value


def _inward(raw: msgspec.Raw, hint: Any) -> Any:
    if hint == Command:
        name, body = _decode(raw, tuple[str, msgspec.Raw])
        if name not in _COMMANDS:
            raise msgspec.ValidationError(f"there is no command {name!r}")
        return _decode(body, _COMMANDS[name])
    return _decode(raw, list[get_args(hint)[0]] if get_origin(hint) is Iterable else hint)


def _decode(data: Any, kind: Any) -> Any:
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_hooked)


def _hooked(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)
