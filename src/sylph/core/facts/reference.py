"""The reference of all events, made from their declarations: one JSON Schema, one page."""

import inspect
import re
from typing import Any

import msgspec

from sylph.core.events import ENVELOPE_VERSION, EventBody, Fact
from sylph.core.facts import FACTS
from sylph.core.signals import SIGNALS

ENVELOPE: dict[str, tuple[dict[str, Any], str]] = {
    "v": ({"type": "integer", "minimum": 1}, "version of the envelope"),
    "session": ({"type": "string"}, "id of the session"),
    "seq": ({"type": "integer", "minimum": 0}, "place in the session's log, dense from 1; 0 for a signal"),
    "turn": ({"type": "string"}, "turn it belongs to (`t1`, `t2` …); empty outside of turns"),
    "ts": ({"type": "integer"}, "milliseconds since 1970, by the clock of the machine"),
    "type": ({"type": "string"}, "what happened: one of the names on this page"),
    "actor": ({"type": "string"}, "who did it: `user`, `sylph`, `nobody` …"),
    "cause": ({"type": "integer", "minimum": 0}, "seq of the fact that led to it; 0 where none is known"),
    "hash": ({"type": "string"}, "link of the hash chain, hex; empty for a signal"),
    "data": ({"type": "object"}, "what the type says, below"),
}


def event_schema() -> dict[str, Any]:
    """JSON Schema of one line of `--json` output, exact for every type this version knows."""
    bodies = (*FACTS, *SIGNALS)
    refs, parts = msgspec.json.schema_components(bodies, ref_template="#/$defs/{name}")
    known = [
        {"if": {"properties": {"type": {"const": body.wire}}}, "then": {"properties": {"data": ref}}}
        for body, ref in zip(bodies, refs, strict=True)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sylph event",
        "description": (
            f"One event, version {ENVELOPE_VERSION} of the envelope. Unknown types are carried, never an error."
        ),
        "type": "object",
        "properties": {name: {**part, "description": text} for name, (part, text) in ENVELOPE.items()},
        "required": list(ENVELOPE),
        "allOf": known,
        "$defs": parts,
    }


def render_page() -> str:
    """The reference page, as Markdown."""
    lines = [
        "# Events",
        "",
        "Made from the declarations in `src/sylph/core`; `scripts/reference` writes it anew, and a test holds it.",
        "",
        "## The envelope",
        "",
        "| field | what it holds |",
        "|---|---|",
        *(f"| `{name}` | {text} |" for name, (_, text) in ENVELOPE.items()),
        "",
        "## Facts",
        "",
        "Facts are kept for ever. A *durable* one is on the disk before anybody is told of it.",
        *(line for fact in FACTS for line in _render_entry(fact)),
        "",
        "## Signals",
        "",
        "Signals are shown while they happen and never kept.",
        *(line for signal in SIGNALS for line in _render_entry(signal)),
    ]
    return "\n".join(lines) + "\n"


def _render_entry(body: type[EventBody]) -> list[str]:
    mark = " · durable" if issubclass(body, Fact) and body.durable else ""
    fields = msgspec.structs.fields(body)
    rows = [f"| `{field.name}` | `{_type_text(field.type)}` | {_default_text(field)} |" for field in fields]
    table = ["", "| field | type | if left out |", "|---|---|---|", *rows] if rows else []
    return ["", f"### `{body.wire}`{mark}", "", " ".join(inspect.getdoc(body).split()), *table]  # pyright: ignore[reportOptionalMemberAccess] - a test demands the docstring


def _type_text(kind: Any) -> str:
    text = re.sub(r"\b(typing|sylph\.[a-z_.]+)\.(?=[A-Z])", "", inspect.formatannotation(kind))
    return text.replace("|", "\\|")


def _default_text(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default is not msgspec.NODEFAULT:
        return f"`{field.default!r}`"
    return "empty"
