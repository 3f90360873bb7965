"""Where a replay and its recording part ways: both sides, and the difference in words."""

import msgspec

from sylph.core.events import UnreadableRecord
from sylph.core.facts.model import ModelRequested
from sylph.engine.log.hash_chain import LogRecord, event_from_record

EXCERPT_CHARS = 40
# What came later into a fact. Its first field is always written now: where it is missing, so was the rest.
ADDED_FIELDS = {ModelRequested.wire: ("kept", "missed")}
HEAD_PARTS = ("system text", "tools")


class DivergentFact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact, as it was recorded or as it was made now."""

    type: str
    turn: str
    ts: int
    actor: str
    cause: int
    data: msgspec.Raw


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first fact that is not what it was. A missing side: the fact is not there at all."""

    seq: int
    what: str
    expected: DivergentFact | None = None
    produced: DivergentFact | None = None
    differences: tuple[str, ...] = ()


def describe_divergence(seq: int, expected: LogRecord | None, produced: LogRecord | None, what: str = "") -> Divergence:
    lines = _field_differences(expected, produced) if expected and produced else []
    return Divergence(
        seq=seq,
        what=what or _describe_difference(expected, produced),
        expected=_build_fact(expected) if expected else None,
        produced=_build_fact(produced) if produced else None,
        differences=tuple(lines),
    )


def _build_fact(record: LogRecord) -> DivergentFact:
    readable = not isinstance(event_from_record(record).body, UnreadableRecord)
    return DivergentFact(
        type=record.type,
        turn=record.turn,
        ts=record.ts,
        actor=record.actor,
        cause=record.cause,
        data=msgspec.Raw(record.data if readable else msgspec.json.encode(record.data.decode("utf-8", "replace"))),
    )


def _describe_difference(expected: LogRecord | None, produced: LogRecord | None) -> str:
    if produced is None:
        return f"The recording goes on with {expected.type if expected else 'nothing'}; the replay does not."
    if expected is None:
        return f"The recording ends here; the replay goes on with {produced.type}."
    if expected.type != produced.type:
        return f"The recording has {expected.type} here, the replay {produced.type}."
    if changed := _changed_head_parts(expected, produced):
        return f"The prompt's head changed: {changed} of this Sylph differ from those of the recording."
    if expected.type == "model.requested":
        return "The prompt is not the same."
    return f"{expected.type} is not the same."


def is_older_format(expected: LogRecord, produced: LogRecord) -> bool:
    """Whether a fact differs from the recorded one only by what a version of then did not write down."""
    later = ADDED_FIELDS.get(produced.type, ())
    if not later or expected.type != produced.type or b'"kept":' in expected.data:
        return False
    then, now = (msgspec.json.decode(record.data, type=dict[str, object]) for record in (expected, produced))
    same = produced._replace(data=expected.data, hash=expected.hash)
    return {name: value for name, value in now.items() if name not in later} == then and same == expected


def differs_only_in_head(expected: LogRecord, produced: LogRecord) -> bool:
    """Whether a request differs from the recorded one in nothing but what every prompt begins with."""
    if not _changed_head_parts(expected, produced):
        return False
    then, now = (msgspec.json.decode(record.data, type=ModelRequested) for record in (expected, produced))
    alike = msgspec.structs.replace(
        now, head=then.head, digest=then.digest, bytes=then.bytes, kept=then.kept, missed=then.missed
    )
    same = produced._replace(data=expected.data, hash=expected.hash)
    return alike == then and bool(then.tail) and same == expected


def _changed_head_parts(expected: LogRecord, produced: LogRecord) -> str:
    """Which of the parts that every prompt begins with are not what they were."""
    if not expected.type == produced.type == ModelRequested.wire:
        return ""
    then, now = (msgspec.json.decode(record.data).get("head", "").split("-") for record in (expected, produced))
    return " and ".join(f"the {name}" for name, a, b in zip(HEAD_PARTS, then, now, strict=False) if a != b)


def _field_differences(expected: LogRecord, produced: LogRecord) -> list[str]:
    """Field by field: `-` as it was, `+` as it is."""
    fields = ("type", "turn", "ts", "actor", "cause", "v", "session")
    pairs = [(name, getattr(expected, name), getattr(produced, name)) for name in fields]
    try:
        then, now = (msgspec.json.decode(record.data, type=dict[str, object]) for record in (expected, produced))
    except (msgspec.DecodeError, UnicodeDecodeError):
        pairs.append(("data", expected.data, produced.data))
    else:
        pairs += [(f"data.{name}", then.get(name), now.get(name)) for name in sorted({*then, *now})]
    lines = [line for name, a, b in pairs if a != b for line in _diff_lines(name, a, b)]
    return lines or ["the bytes differ, the values do not"]


def _diff_lines(name: str, then: object, now: object) -> list[str]:
    if isinstance(then, str) and isinstance(now, str):
        same = next((at for at, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
        start = max(same - EXCERPT_CHARS, 0)
        then, now = ((("…" if start else "") + text[start : same + EXCERPT_CHARS]) for text in (then, now))
    return [f"- {name}: {_format_value(then)}", f"+ {name}: {_format_value(now)}"]


def _format_value(value: object) -> str:
    text = repr(value) if isinstance(value, str | bytes) else msgspec.json.encode(value).decode()
    return text if len(text) <= 4 * EXCERPT_CHARS else text[: 4 * EXCERPT_CHARS] + "…"
