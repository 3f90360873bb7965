"""Examples for routes that show none of their own: made from what they declare, by the names of the fields."""

from typing import Any

import msgspec
from msgspec import inspect as types

# What a field of that name looks like.
EXAMPLE_VALUES: dict[str, Any] = {
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
TIME_FIELDS = (
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
EXAMPLE_TIME = 1_762_000_000_000
MAX_DEPTH = 6


def example_of(shape: Any) -> Any:
    """A value of that type, as JSON shows it."""
    return _example_value(types.type_info(shape), "", MAX_DEPTH)


def _example_value(info: types.Type, name: str, left: int) -> Any:  # noqa: PLR0911 - one flat table of types
    match info:
        case types.Metadata(type=inner):
            return _example_value(inner, name, left)
        case types.StructType():
            return _struct_example(info, left)
        case types.UnionType(types=each):
            some = [one for one in each if not isinstance(one, types.NoneType)]
            return (
                _example_value(some[0], name, left)
                if some and (name not in EXAMPLE_VALUES or EXAMPLE_VALUES[name] is not None)
                else None
            )
        case types.ListType(item_type=item) | types.CollectionType(item_type=item) | types.VarTupleType(item_type=item):
            return [_example_value(item, name.removesuffix("s"), left - 1)] if left > 0 else []
        case types.TupleType(item_types=items):
            return [_example_value(item, name, left - 1) for item in items]
        case types.DictType(key_type=key, value_type=value):
            return {str(_example_value(key, "", 0)): _example_value(value, name, left - 1)} if left > 0 else {}
        case types.LiteralType(values=values):
            return values[0]
        case _:
            return _scalar_example(info, name)


def _scalar_example(info: types.Type, name: str) -> Any:
    """Text and numbers; what cannot be told from its type is empty."""
    known = EXAMPLE_VALUES.get(name)
    match info:
        case types.StrType():
            return known if isinstance(known, str) else name or "example"
        case types.BoolType():
            return True
        case types.IntType(ge=least):
            return known if isinstance(known, int) else EXAMPLE_TIME if name in TIME_FIELDS else least or 1
        case types.FloatType():
            return 1.5
        case types.NoneType():
            return None
        case _:
            return {} if isinstance(info, types.AnyType | types.RawType) else "example"


def _struct_example(info: types.StructType, left: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if info.tag_field:
        made[info.tag_field] = info.tag
    for field in info.fields:
        if field.required or left > 1:
            made[field.encode_name] = _example_value(field.type, field.name, left - 1)
    return made


def to_json_value(value: Any) -> Any:
    """An example that a route gives itself, as JSON shows it."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
