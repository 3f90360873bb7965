"""What may stand where something else was found that is none of it."""

import re
from typing import Any

from msgspec import inspect

STEP = re.compile(r"\.(\w+)|\[")


def choices(shape: Any, said: str) -> list[str]:
    """What may stand at the place that an error of msgspec names; nothing where that is not a matter of choice."""
    if not said.startswith("Invalid enum value"):
        return []
    found = [inspect.type_info(shape)]
    for step in STEP.finditer(said.partition("at `$")[2]):
        found = [deeper for each in found for deeper in _within(each, step[1])]
    return [repr(value) for each in found for plain in _plain(each) for value in getattr(plain, "values", ())]


def _within(info: inspect.Type, name: str | None) -> list[inspect.Type]:
    """What is in a field of that name; without one, in each item."""
    found = list[inspect.Type]()
    for each in _plain(info):
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


def _plain(info: inspect.Type) -> list[inspect.Type]:
    match info:
        case inspect.Metadata(type=inner):
            return _plain(inner)
        case inspect.UnionType(types=types):
            return [plain for each in types for plain in _plain(each)]
        case _:
            return [info]
