"""The contract of `--json`, pinned: what is in contract.json may grow, but never change or vanish.

python tests/interfaces/cli/test_json_contract.py      adds what is new to contract.json
"""

import json
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from sylph.core.errors import ErrorReport
from sylph.core.events import Event, EventBody, UnreadableRecord, encode_event
from sylph.core.facts import FACTS
from sylph.core.facts.tool_call import ToolFinished
from sylph.core.facts.turn import PlanUpdated
from sylph.core.signals import SIGNALS, TextDelta

PINNED = Path(__file__).with_name("contract.json")
ENVELOPE = {
    "v": int,
    "session": str,
    "seq": int,
    "turn": str,
    "ts": int,
    "type": str,
    "actor": str,
    "cause": int,
    "hash": str,
    "data": dict,
}


def contract() -> dict[str, dict[str, Any]]:
    """Every event type with its fields as JSON Schema says it, without the names of our classes."""
    return json.loads(json.dumps({kind.wire: fields_of(kind) for kind in (*FACTS, *SIGNALS)}))


def fields_of(kind: type[EventBody]) -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([kind])
    return {
        name: {key: value for key, value in inlined(field, parts).items() if key not in ("default", "description")}
        for name, field in parts[kind.__name__]["properties"].items()
    }


def inlined(schema: Any, parts: dict[str, Any]) -> Any:
    """A schema with what it refers to in the place of the reference."""
    if isinstance(schema, list):
        return [inlined(each, parts) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast("dict[str, Any]", schema)
    if "$ref" in found:
        return inlined(parts[found["$ref"].rpartition("/")[2]], parts)
    return {key: inlined(value, parts) for key, value in found.items() if key not in ("title", "description")}


def test_nothing_that_was_promised_has_changed() -> None:
    now, promised = contract(), json.loads(PINNED.read_text())
    for wire, fields in promised.items():
        kept = {name: now[wire].get(name) for name in fields}
        assert kept == fields, f"{wire} is not what programs were promised"


def test_every_type_is_promised() -> None:
    new = {wire for wire, fields in contract().items() if json.loads(PINNED.read_text()).get(wire) != fields}
    assert not new, f"run this file to pin {new}"


def test_the_envelope() -> None:
    finished = ToolFinished(call="c", ok=False, output="x", exit=1, trouble=ErrorReport("kind", "message"))
    for body in (finished, TextDelta(text="x"), PlanUpdated(steps=())):
        told = json.loads(encode_event(Event(session="s", seq=1, ts=2, body=body, turn="t1", hash="h")))
        assert {key: type(value) for key, value in told.items()} == ENVELOPE
        assert told["type"] == body.wire


def test_a_line_is_one_line() -> None:
    assert b"\n" not in encode_event(Event(session="s", seq=0, ts=0, body=TextDelta(text="a\nb\u2028c")))


def test_what_cannot_be_read_is_still_json() -> None:
    damaged = UnreadableRecord(type="tool.finished", raw=b"{broken", why="damaged: not JSON")
    told = json.loads(encode_event(Event(session="s", seq=3, ts=0, body=damaged)))
    assert (told["type"], told["data"]) == ("tool.finished", {"damaged": "damaged: not JSON"})


if __name__ == "__main__":
    kept: dict[str, dict[str, Any]] = json.loads(PINNED.read_text()) if PINNED.exists() else {}
    merged = {wire: {**fields, **kept.get(wire, {})} for wire, fields in contract().items()}
    PINNED.write_text(json.dumps({**kept, **merged}, indent=1, sort_keys=True) + "\n")
    sys.exit()
