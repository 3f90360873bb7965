#!/usr/bin/env python3
"""Verify the log of Sylph's sessions without Sylph. It needs Python 3.11 or newer and nothing else.

    python3 verify_log.py FILE...

A FILE is a store (`events.db`; it is only read) or an export of one session (`sylph session export`). For each session
the hash chain is computed anew. The exit code is 0 if all is well, 1 if something is not, 2 if a file cannot be read.
`sylph verify` has to come to the same verdict; the format is described in docs/reference/log-format.md.
"""

import base64
import hashlib
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1  # of the envelope and of exports: facts of a newer one are chained like all others, but not understood
COMMITMENT = 32  # bytes in the place of the 8-byte salt: the fact was erased, and the commitment to it was kept


class Fact(NamedTuple):
    """One record of the log, in the order of the columns of the table `event`."""

    session: str
    seq: int
    v: int
    turn: str
    ts: int
    type: str
    actor: str
    cause: int
    data: bytes
    salt: bytes
    hash: bytes


End = tuple[int, bytes | None]
"""Number and hash of the last fact as the file tells them; an export tells no hash."""
Output = Callable[[str], bytes | None]
"""Gives a whole output by its name."""


def verify(facts: Sequence[Fact], end: End, output: Output) -> list[str]:
    """Everything that is wrong with the log of one session."""
    return [*broken_links(facts, end), *unvouched_erasures(facts), *changed_outputs(facts, output)]


def broken_links(facts: Sequence[Fact], end: End) -> Iterator[str]:
    """Numbers count from 1 without a gap, and every fact has the hash that follows from the one before."""
    before, expected = b"", 1
    for fact in facts:
        if type(fact.seq) is not int or fact.seq < 1:
            yield f"fact {fact.seq!r} has no place in the order"
            continue
        if fact.seq != expected:
            yield f"fact {expected} is missing: {fact.seq} follows {expected - 1}"
        elif fact.hash != link(before, fact):
            yield f"fact {fact.seq} is not what was written, or what stands before it is not"
        before, expected = fact.hash, fact.seq + 1
    if end[0] != expected - 1 or end[1] not in (before, None):
        yield f"the log should end at fact {end[0]} and ends at {expected - 1}, or its last hash is another"


def link(before: bytes, fact: Fact) -> bytes:
    """The hash of a fact, made from the hash before it, its envelope, and the commitment to its data."""
    envelope = [fact.v, fact.session, fact.seq, fact.turn, fact.ts, fact.type, fact.actor, fact.cause]
    head = json.dumps(envelope, separators=(",", ":"), ensure_ascii=False, default=repr)
    commitment = fact.salt if len(fact.salt) == COMMITMENT else blake(fact.salt + fact.data)
    return blake(before + head.encode("utf-8", "surrogatepass") + commitment)


def unvouched_erasures(facts: Sequence[Fact]) -> Iterator[str]:
    """An erased fact keeps its commitment; what stands there now must be what a `session.erased` says."""
    vouched = vouchers(facts, "facts")
    for fact in facts:
        if len(fact.salt) == COMMITMENT and (str(fact.seq), blake(fact.data).hex()) not in vouched:
            yield f"fact {fact.seq} was erased, and nobody vouches for what stands there now"


def changed_outputs(facts: Sequence[Fact], output: Output) -> Iterator[str]:
    """Outputs too long for the model are kept whole, images too; the name is the hash, unless it was erased."""
    vouched = vouchers(facts, "blobs")
    for fact in facts:
        data = said(fact) if fact.type == "tool.finished" else {}
        images: list[Any] = data["images"] if isinstance(data.get("images"), list) else []
        names = (data.get("whole"), *(image.get("digest") for image in images if hasattr(image, "get")))
        if not all(intact(str(name), output(str(name)), vouched) for name in names if name):
            yield f"the whole output or image that fact {fact.seq} refers to is gone or is not what it was"


def intact(name: str, kept: bytes | None, vouched: set[tuple[str, str]]) -> bool:
    return kept is not None and (blake(kept, 16).hex() == name or (name, blake(kept).hex()) in vouched)


def vouchers(facts: Sequence[Fact], kind: str) -> set[tuple[str, str]]:
    """What was erased (the number of a fact, the name of an output), each with the hash of what is there now."""
    told: list[Any] = [said(fact).get(kind) for fact in facts if fact.type == "session.erased"]
    return {(name, str(now)) for each in told if hasattr(each, "items") for name, now in each.items()}


def said(fact: Fact) -> dict[str, Any]:
    """The data of a fact; nothing if this version cannot read it."""
    try:
        return dict(json.loads(fact.data)) if fact.v <= VERSION else {}
    except (ValueError, TypeError):
        return {}


def blake(data: bytes, size: int = 32) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


# The store. The casts make sure of what a row is made of, whatever somebody put there by hand.
FACTS = """select session, seq, cast(v as integer), cast(turn as text), cast(ts as integer),
    cast(type as text), cast(actor as text), cast(cause as integer), cast(data as blob), cast(salt as blob),
    cast(hash as blob) from event where session = ? order by seq"""
Found = Iterator[tuple[str, int, list[str]]]
"""Sessions, each with the number of its facts and its problems."""


def read_store(path: Path) -> Found:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    db.text_factory = partial(str, encoding="utf-8", errors="replace")
    db.execute("begin")  # one moment of the store, also while Sylph writes to it
    for (session,) in db.execute("select id from session union select session from event order by 1").fetchall():
        facts = [Fact(*row) for row in db.execute(FACTS, (session,))]
        ends = db.execute("select cast(seq as integer), cast(hash as blob) from session where id = ?", (session,))
        yield session, len(facts), verify(facts, ends.fetchone() or (0, b""), partial(blob, db, session))
    db.close()


def blob(db: sqlite3.Connection, session: str, name: str) -> bytes | None:
    rows = db.execute("select cast(bytes as blob) from blob where session = ? and digest = ?", (session, name))
    return next((data for (data,) in rows), None)


def read_export(path: Path) -> Found:
    """Each line is a JSON object with a `kind`; a header says how many events and blobs there are."""
    lines: dict[str, list[dict[str, Any]]] = {"header": [], "event": [], "blob": []}
    try:
        for line in filter(bytes.strip, path.read_bytes().split(b"\n")):
            values = members(line.decode())
            lines[values["kind"]].append(values)
        facts = [fact_of(values) for values in lines["event"]]
        outputs = {one["digest"]: base64.b64decode(one["base64"], validate=True) for one in lines["blob"]}
        header = {**lines["header"][-1], "version": max(each["version"] for each in lines["header"])}
        known = {type(header["format"]), type(header["session"])} == {str} and header["version"] <= VERSION
        (session,) = {one["session"] for one in (*lines["event"], *lines["blob"])}
    except (ValueError, LookupError, TypeError) as error:
        yield path.name, 0, [f"it is not the whole export of one session: {error!r}"]
        return
    problems = verify(facts, (len(facts), None), outputs.get)
    if not known or (header.get("events"), header.get("blobs", 0)) != (len(facts), len(lines["blob"])):
        problems.append(f"its header announces something else than is there: {header}")
    changed = [name for name in outputs if not intact(name, outputs[name], vouchers(facts, "blobs"))]
    yield session, len(facts), problems + [f"the output {name} is not what it was" for name in changed]


def members(line: str) -> dict[str, Any]:
    """A JSON object, in which `data` are the bytes as they stand there: they were hashed, not what they mean."""
    values: dict[str, Any] = dict(json.loads(line))
    decode, rest = json.JSONDecoder().raw_decode, line.strip().removeprefix("{").lstrip()
    while rest != "}":
        key, at = decode(rest)
        rest = rest[at:].lstrip(" \t\r:")
        values[key], at = decode(rest)
        values[key] = rest[:at].encode() if key == "data" else values[key]
        rest = rest[at:].lstrip(" \t\r,")
    return values


def fact_of(values: dict[str, Any]) -> Fact:
    # `raw` holds bytes that are no JSON, or that would not stay what they are on one line.
    data = values["data"] if values.get("raw") is None else base64.b64decode(values["raw"], validate=True)
    told = [values[name] for name in Fact._fields[:8]]
    if [type(value) for value in told] != [str, int, int, str, int, str, str, int]:
        raise ValueError(f"no envelope: {told}")
    return Fact._make([*told, data, bytes.fromhex(values["salt"]), bytes.fromhex(values["hash"])])


def main(paths: list[str]) -> int:
    codes = [0]
    for path in map(Path, paths):
        try:
            with path.open("rb") as file:
                read = read_store if file.read(16) == b"SQLite format 3\0" else read_export
            for session, count, problems in read(path):
                print(f"{session}  {count} facts  {'NOT OK' if problems else 'ok'}")
                print("".join(f"  {problem}\n" for problem in problems[:20]), end="")
                codes.append(1 if problems else 0)
        except (OSError, sqlite3.Error) as error:
            print(f"{path} cannot be read: {error}", file=sys.stderr)
            codes.append(2)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.argv[1:] else __doc__)
