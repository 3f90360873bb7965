"""The contract of `--json`, pinned: what is in contract.json may grow, but never change or vanish.

python tests/interfaces/cli/test_json_contract.py      adds what is new to contract.json
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from sylph.core.errors import Trouble
from sylph.core.events import Body, Carried, Event, line_of
from sylph.core.facts import FACTS, PlanUpdated, ToolFinished
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
    """Every event type with the type of each of its fields, as JSON Schema says it."""
    return {kind.wire: fields_of(kind) for kind in (*FACTS, *SIGNALS)}


def fields_of(kind: type[Body]) -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([kind])
    return {
        name: {key: value for key, value in field.items() if key not in ("default", "description")}
        for name, field in parts[kind.__name__]["properties"].items()
    }


def test_nothing_that_was_promised_has_changed() -> None:
    now, promised = contract(), json.loads(PINNED.read_text())
    for wire, fields in promised.items():
        assert now[wire].items() >= fields.items(), f"{wire} is not what programs were promised"


def test_every_type_is_promised() -> None:
    new = {wire for wire, fields in contract().items() if json.loads(PINNED.read_text()).get(wire) != fields}
    assert not new, f"run this file to pin {new}"


def test_the_envelope() -> None:
    finished = ToolFinished(call="c", ok=False, output="x", exit=1, trouble=Trouble("kind", "message"))
    for body in (finished, TextDelta(text="x"), PlanUpdated(steps=())):
        told = json.loads(line_of(Event(session="s", seq=1, ts=2, body=body, turn="t1", hash="h")))
        assert {key: type(value) for key, value in told.items()} == ENVELOPE
        assert told["type"] == body.wire


def test_a_line_is_one_line() -> None:
    assert b"\n" not in line_of(Event(session="s", seq=0, ts=0, body=TextDelta(text="a\nb\u2028c")))


def test_what_cannot_be_read_is_still_json() -> None:
    damaged = Carried(type="tool.finished", raw=b"{broken", why="damaged: not JSON")
    told = json.loads(line_of(Event(session="s", seq=3, ts=0, body=damaged)))
    assert (told["type"], told["data"]) == ("tool.finished", {"damaged": "damaged: not JSON"})


if __name__ == "__main__":
    kept: dict[str, dict[str, Any]] = json.loads(PINNED.read_text()) if PINNED.exists() else {}
    merged = {wire: {**fields, **kept.get(wire, {})} for wire, fields in contract().items()}
    PINNED.write_text(json.dumps({**kept, **merged}, indent=1, sort_keys=True) + "\n")
    sys.exit()
