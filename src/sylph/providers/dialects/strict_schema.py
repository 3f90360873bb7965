"""JSON Schemas for answers, as services want them."""

from collections.abc import Mapping
from typing import Any, cast

NAME = "answer"


def is_strict(schema: object) -> bool:
    """Whether a service can hold an answer to the letter of it: every property required, and no others allowed."""
    if isinstance(schema, list):
        return all(map(is_strict, cast("list[object]", schema)))
    if not isinstance(schema, dict):
        return True
    told = cast("Mapping[str, Any]", schema)
    if told.get("type") == "object" or "properties" in told:
        named: Mapping[str, Any] = told.get("properties") or {}
        if told.get("additionalProperties") is not False or set(told.get("required") or ()) != set(named):
            return False
        return all(map(is_strict, named.values())) and is_strict(told.get("$defs"))
    return all(is_strict(value) for value in told.values())


def answer_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The format of OpenAI's dialects. A schema that is not strict is only a wish there."""
    return {"name": NAME, "schema": schema, "strict": is_strict(schema)}
