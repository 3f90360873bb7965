"""JSON Schemas as services take them."""

import json
from typing import Any

import pytest

from sylph.providers.dialects.json_schema import to_gemini_schema, to_strict_schema

TAKEN_BY_GEMINI = {
    *("type", "format", "title", "description", "nullable", "enum", "default", "pattern", "anyOf", "items"),
    *("properties", "required", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
}


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "format": "uri", "minLength": 1}, {"type": "string", "minLength": 1}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, 2], "description": "How many."}, {"type": "integer", "description": "How many. One of 1, 2."}),
        ({"enum": ["", "a"]}, {"type": "string", "description": "One of '', 'a'."}),
        ({"const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "integer", "nullable": True}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 2}, {"type": "number"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({}, {"type": "string"}),
        (
            {
                "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}],
                "$schema": "x",
            },
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
        (
            {"$ref": "#/$defs/A~1B", "$defs": {"A/B": {"type": "boolean"}}, "description": "Whether."},
            {"type": "boolean", "description": "Whether."},
        ),
    ],
)
def test_gemini_is_told_what_it_takes(schema: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert to_gemini_schema(schema) == wanted


TREE: dict[str, Any] = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "left": {"$ref": "#/$defs/Node"},
                "right": {"$ref": "#/$defs/Node"},
                "name": {"type": "string"},
            },
            "required": ["name"],
        }
    },
}


def test_what_leads_back_to_itself_ends() -> None:
    assert to_gemini_schema(TREE)["properties"]["left"] == {"type": "object"}
    assert to_strict_schema(TREE)["properties"]["left"] == {"type": "object"}


def test_a_schema_that_would_become_endless_ends() -> None:
    both = {
        f"L{at}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/L{at + 1}"} for side in "ab"}}
        for at in range(40)
    }
    hostile = {"$ref": "#/$defs/L0", "$defs": both}
    assert len(json.dumps(to_gemini_schema(hostile))) < 500_000
    assert len(json.dumps(to_strict_schema(hostile))) < 900_000


def test_a_reference_to_nowhere_is_anything() -> None:
    assert to_gemini_schema({"$ref": "#/$defs/missing"}) == {"type": "string"}
    assert to_gemini_schema({"$ref": "https://elsewhere.example/x"}) == {"type": "string"}


def keys(schema: Any) -> set[str]:
    """Every word that a schema uses, at whatever depth."""
    found: set[str] = set(schema)
    inner: list[Any] = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        found |= keys(each)
    return found


def test_every_tool_of_sylph_fits_into_geminis_subset(specs: Any) -> None:
    for tool in specs:
        assert keys(to_gemini_schema(tool.schema)) <= TAKEN_BY_GEMINI, tool.name


def test_a_schema_that_is_followed_to_the_letter_is_closed() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "at": {"type": "string", "format": "date-time", "maxLength": 9},
            "odd": {"type": "string", "format": "odd"},
            "list": {"type": "array", "items": {"type": "object", "properties": {}}, "minItems": 1},
            "either": {"oneOf": [{"type": "string"}, {"type": "null"}]},
        },
    }
    assert to_strict_schema(schema) == {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "odd": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": False}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }
