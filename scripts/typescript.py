"""The types of events for the browser app, from the one declaration of them: web/src/log/events.ts."""

from typing import Any

HEAD = """// Made by scripts/reference from the declarations in src/sylph/core. Not to be edited.
// A field with a default is left out on the wire where it has it: here it is optional.

"""


def events(schema: dict[str, Any]) -> str:
    parts = [HEAD]
    parts += [_interface(name, shape) for name, shape in schema["$defs"].items()]
    kinds = [
        (rule["if"]["properties"]["type"]["const"], rule["then"]["properties"]["data"]["$ref"].rpartition("/")[2])
        for rule in schema["allOf"]
    ]
    parts.append("export interface Bodies {\n" + "".join(f'  "{wire}": {name};\n' for wire, name in kinds) + "}\n\n")
    parts.append("export interface Envelope {\n")
    parts += [
        f"  {name}: {_type(shape)};\n" for name, shape in schema["properties"].items() if name not in ("type", "data")
    ]
    parts.append("}\n\n")
    parts.append("export type Wire = keyof Bodies;\n")
    parts.append("export type SylphEvent = { [W in Wire]: Envelope & { type: W; data: Bodies[W] } }[Wire];\n")
    return "".join(parts)


def _interface(name: str, shape: dict[str, Any]) -> str:
    told = " ".join(shape.get("description", "").split()).replace("*/", "* /")
    comment = f"/** {told} */\n" if told else ""
    if shape.get("type") == "array":
        return f"{comment}export type {name} = {_type(shape)};\n\n"
    wanted = set(shape.get("required", ()))
    fields = "".join(
        f"  {field}{'' if field in wanted else '?'}: {_type(each)};\n"
        for field, each in shape.get("properties", {}).items()
    )
    return (
        f"{comment}export interface {name} {{\n{fields}}}\n\n"
        if fields
        else f"{comment}export type {name} = object;\n\n"
    )


PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def _type(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return shape["$ref"].rpartition("/")[2]
    if "enum" in shape:
        return " | ".join(f'"{each}"' for each in shape["enum"])
    if "anyOf" in shape:
        return " | ".join(_type(each) for each in shape["anyOf"])
    kind = shape.get("type", "")
    return PLAIN.get(kind) or (_list(shape) if kind == "array" else _mapping(shape))


def _list(shape: dict[str, Any]) -> str:
    if "prefixItems" in shape:
        return f"[{', '.join(_type(each) for each in shape['prefixItems'])}]"
    inner = _type(shape.get("items", {}))
    return f"({inner})[]" if "|" in inner else f"{inner}[]"


def _mapping(shape: dict[str, Any]) -> str:
    values: dict[str, Any] | bool = shape.get("additionalProperties", False)
    return "unknown" if isinstance(values, bool) else f"Record<string, {_type(values)}>"
