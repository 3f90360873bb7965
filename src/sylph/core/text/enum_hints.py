"""What may stand where something else was found that is none of it."""

import re
from typing import Any

from msgspec import inspect

PATH_STEP = re.compile(r"\.(\w+)|\[")


def find_enum_values(shape: Any, said: str) -> list[str]:
    """What may stand at the place that an error of msgspec names; nothing where that is not a matter of choice."""
    if not said.startswith("Invalid enum value"):
        return []
    found = [inspect.type_info(shape)]
    for step in PATH_STEP.finditer(said.partition("at `$")[2]):
        found = [deeper for each in found for deeper in _types_within(each, step[1])]
    return [repr(value) for each in found for plain in _flatten_type(each) for value in getattr(plain, "values", ())]


def _types_within(info: inspect.Type, name: str | None) -> list[inspect.Type]:
    """What is in a field of that name; without one, in each item."""
    found = list[inspect.Type]()
    for each in _flatten_type(info):
        match each:
            case inspect.StructType(fields=fields) if name:
                found += [field.type for field in fields if field.encode_name == name]
            case inspect.CollectionType(item_type=item) if not name:
                found.append(item)
            case inspect.TupleType(item_types=items) if not name:
                found += items
            case inspect.DictType(value_type=value):
                found.append(value)
            case _:
                pass
    return found


def _flatten_type(info: inspect.Type) -> list[inspect.Type]:
    match info:
        case inspect.Metadata(type=inner):
            return _flatten_type(inner)
        case inspect.UnionType(types=types):
            return [plain for each in types for plain in _flatten_type(each)]
        case _:
            return [info]
