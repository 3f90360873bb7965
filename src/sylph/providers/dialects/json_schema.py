"""JSON Schemas cut down to what a service takes: what it would refuse is left out or said in other words."""

from collections.abc import Mapping
from typing import Any, cast

Schema = dict[str, Any]
# What a schema may say of a value without any service minding.
ANNOTATIONS = ("title", "description", "default")
MAX_NODES = 5_000
"""Schemas that refer to each other can become endless; after so many values the rest is any object."""

STRICT_KEYWORDS = (*ANNOTATIONS, "type", "enum", "const", "format", "pattern", "required")
STRICT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "uuid"})

GEMINI_KEYWORDS = (*ANNOTATIONS, "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern")
GEMINI_FORMATS = {"string": {"enum", "date-time"}, "integer": {"int32", "int64"}, "number": {"float", "double"}}
JSON_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def to_strict_schema(schema: Schema) -> Schema:
    """For services that follow a schema to the letter: every object is closed, and no bounds are told in numbers."""
    return _StrictConverter(schema).convert_schema(schema)


def to_gemini_schema(schema: Schema) -> Schema:
    """Google's subset: no references, one type per value, choices only among texts, no closed objects."""
    return _GeminiConverter(schema).convert_schema(schema)


class _SchemaConverter:
    """One schema being cut. References are followed, but none that leads back to where it stands."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MAX_NODES
        self._path: list[str] = []

    def convert_schema(self, schema: object) -> Schema:
        self._left -= 1
        depth = len(self._path)
        resolved = self._resolve_refs(_as_object(schema))
        try:
            return {"type": "object"} if resolved is None or self._left < 0 else self.convert_resolved(resolved)
        finally:
            del self._path[depth:]

    def convert_resolved(self, schema: Schema) -> Schema:
        raise NotImplementedError

    def _resolve_refs(self, schema: Schema) -> Schema | None:
        """The schema that is referred to, with what stands beside the reference; None where that goes in circles."""
        while isinstance(where := schema.get("$ref"), str):
            if where in self._path:
                return None
            self._path.append(where)
            found: Any = self._root
            for part in where.removeprefix("#").strip("/").split("/"):
                found = _as_object(found).get(part.replace("~1", "/").replace("~0", "~"), {}) if part else found
            schema = {**_as_object(found), **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema


class _StrictConverter(_SchemaConverter):
    def convert_resolved(self, schema: Schema) -> Schema:
        made: Schema = {key: schema[key] for key in STRICT_KEYWORDS if key in schema}
        if made.get("format") not in STRICT_FORMATS:
            made.pop("format", None)
        for key in ("anyOf", "allOf", "oneOf"):
            if options := _get_list(schema, key):
                made["anyOf" if key == "oneOf" else key] = [self.convert_schema(each) for each in options]
        if "items" in schema:
            made["items"] = self.convert_schema(schema["items"])
        if schema.get("type") == "object" or "properties" in schema:
            inner = _as_object(schema.get("properties"))
            made["properties"] = {name: self.convert_schema(each) for name, each in inner.items()}
            made["additionalProperties"] = False
        return made


class _GeminiConverter(_SchemaConverter):
    def convert_resolved(self, schema: Schema) -> Schema:
        schema = self._merge_all_of(schema)
        made: Schema = {key: schema[key] for key in GEMINI_KEYWORDS if key in schema}
        kinds = _find_types(schema)
        options = [_as_object(each) for key in ("anyOf", "oneOf") for each in _get_list(schema, key)]
        if "null" in kinds or any(each.get("type") == "null" for each in options):
            made["nullable"] = True
        kinds = [kind for kind in kinds if kind != "null"]
        options = [each for each in options if each.get("type") != "null"]
        if len(kinds) > 1:
            options = [{**_without_type(schema), "type": kind} for kind in kinds]
        if len(options) == 1:
            return {**self.convert_schema(options[0]), **made}
        if options:
            return {**made, "anyOf": [self.convert_schema(each) for each in options]}
        kind = kinds[0] if kinds else "string"
        return self._convert_typed(schema, made, kind)

    def _convert_typed(self, schema: Schema, made: Schema, kind: str) -> Schema:
        made["type"] = kind
        _add_choices(schema, made, kind)
        _add_bounds(schema, made, kind)
        if schema.get("format") in GEMINI_FORMATS.get(kind, ()):
            made["format"] = schema["format"]
        if kind == "array":
            made["items"] = self.convert_schema(schema.get("items"))
        if kind == "object" and (inner := _as_object(schema.get("properties"))):
            made["properties"] = {name: self.convert_schema(each) for name, each in inner.items()}
            if required := [name for name in _get_list(schema, "required") if name in inner]:
                made["required"] = required
        return made

    def _merge_all_of(self, schema: Schema) -> Schema:
        """All that must hold at once, as one."""
        made = {key: value for key, value in schema.items() if key != "allOf"}
        for each in _get_list(schema, "allOf"):
            self._left -= 1
            resolved = self._resolve_refs(_as_object(each)) if self._left > 0 else None
            part = self._merge_all_of(resolved or {})
            properties = {**_as_object(made.get("properties")), **_as_object(part.get("properties"))}
            required = list(dict.fromkeys([*_get_list(made, "required"), *_get_list(part, "required")]))
            made = {**part, **made}
            made |= ({"properties": properties} if properties else {}) | ({"required": required} if required else {})
        return made


def _add_choices(schema: Schema, made: Schema, kind: str) -> None:
    """Only texts can be chosen from; of other values the choices are told in words."""
    choices = _enum_values(schema)
    if not choices:
        return
    if kind == "string" and all(isinstance(each, str) and each for each in choices):
        made["enum"] = choices
        return
    told = f"One of {', '.join(map(repr, choices))}."
    made["description"] = f"{made.get('description', '')} {told}".strip()


def _add_bounds(schema: Schema, made: Schema, kind: str) -> None:
    """Bounds that a value may not reach become such that it may, where that is exact."""
    if kind == "integer":
        for open_end, bound, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            if isinstance(limit := schema.get(open_end), int):
                made[bound] = limit + step


def _find_types(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, list):
        return [str(each) for each in cast("list[object]", kind)]
    if kind:
        return [str(kind)]
    if "properties" in schema:
        return ["object"]
    if "items" in schema:
        return ["array"]
    return list(dict.fromkeys(_type_name(value) for value in _enum_values(schema)))


def _type_name(value: object) -> str:
    return JSON_TYPES.get(cast("type", type(value)), "object")


def _enum_values(schema: Schema) -> list[object]:
    return _get_list(schema, "enum") or ([schema["const"]] if "const" in schema else [])


def _without_type(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("type", *ANNOTATIONS)}


def _as_object(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def _get_list(schema: Schema, key: str) -> list[Any]:
    value = schema.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []
