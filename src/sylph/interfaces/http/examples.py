"""Examples for routes that show none of their own: made from what they declare, by the names of the fields."""

from typing import Any

import msgspec
from msgspec import inspect as types

# What a field of that name looks like.
NAMED: dict[str, Any] = {
    "id": "h7k2m9qxwz4d",
    "session": "h7k2m9qxwz4d",
    "workspace": "/home/ann/project",
    "path": "src/parser.py",
    "root": "/home/ann/project",
    "title": "Mend the parser",
    "text": "Why does the test fail?",
    "question": "May `pytest` be run?",
    "detail": "pytest -q",
    "reason": "as agreed",
    "model": "openai/gpt-5",
    "provider": "openai",
    "service": "openai",
    "role": "main",
    "name": "read",
    "key": "limits.rounds",
    "mode": "ask",
    "state": "idle",
    "turn": "t1",
    "call": "t1_c1",
    "input": "i1",
    "branch": "main",
    "url": "https://git.example/project.git",
    "version": "0.1.0",
    "etag": "42",
    "next": None,
    "seq": 42,
    "turns": 2,
    "ms": 1200,
}
TIMES = (
    "created",
    "updated",
    "started",
    "ended",
    "expires",
    "used",
    "at",
    "ts",
    "since",
    "modified",
    "changed",
    "time",
)
NOW = 1_762_000_000_000
DEEP = 6


def example_of(shape: Any) -> Any:
    """A value of that type, as JSON shows it."""
    return _made(types.type_info(shape), "", DEEP)


def _made(info: types.Type, name: str, left: int) -> Any:  # noqa: PLR0911 - one flat table of types
    match info:
        case types.Metadata(type=inner):
            return _made(inner, name, left)
        case types.StructType():
            return _struct(info, left)
        case types.UnionType(types=each):
            some = [one for one in each if not isinstance(one, types.NoneType)]
            return _made(some[0], name, left) if some and (name not in NAMED or NAMED[name] is not None) else None
        case types.ListType(item_type=item) | types.CollectionType(item_type=item) | types.VarTupleType(item_type=item):
            return [_made(item, name.removesuffix("s"), left - 1)] if left > 0 else []
        case types.TupleType(item_types=items):
            return [_made(item, name, left - 1) for item in items]
        case types.DictType(key_type=key, value_type=value):
            return {str(_made(key, "", 0)): _made(value, name, left - 1)} if left > 0 else {}
        case types.LiteralType(values=values):
            return values[0]
        case _:
            return _scalar(info, name)


def _scalar(info: types.Type, name: str) -> Any:
    """Text and numbers; what cannot be told from its type is empty."""
    known = NAMED.get(name)
    match info:
        case types.StrType():
            return known if isinstance(known, str) else name or "example"
        case types.BoolType():
            return True
        case types.IntType(ge=least):
            return known if isinstance(known, int) else NOW if name in TIMES else least or 1
        case types.FloatType():
            return 1.5
        case types.NoneType():
            return None
        case _:
            return {} if isinstance(info, types.AnyType | types.RawType) else "example"


def _struct(info: types.StructType, left: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if info.tag_field:
        made[info.tag_field] = info.tag
    for field in info.fields:
        if field.required or left > 1:
            made[field.encode_name] = _made(field.type, field.name, left - 1)
    return made


def shown(value: Any) -> Any:
    """An example that a route gives itself, as JSON shows it."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
