"""Looking through the logs of all sessions. There is no index: nothing can be stale in it, and nothing be left in it
that was erased. 100,000 facts take less than half a second, and the newest come first."""

import asyncio
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from sylph.core import facts
from sylph.core.archive import Findings, Found, Speaker, Wanted
from sylph.core.errors import UserError
from sylph.core.events import Body
from sylph.engine import schema
from sylph.engine.log import COLUMNS, COUNTED
from sylph.engine.seal import Record, event_of

SECONDS = 10.0
AROUND = 200
SPOKEN: dict[str, Speaker] = {
    "input.received": "user",
    "model.responded": "assistant",
    "tool.called": "call",
    "tool.finished": "result",
}
FATES = ("session.deleted", "session.restored")
WORD = re.compile(r'"([^"]+)"|(\S+)')
# What stands in JSON as it is said.
PLAIN = re.compile(r"[ !#-\[\]-~]+")


class LogArchive:
    """Reads on a connection and in a thread of its own: neither the writer nor the loop waits for it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def search(self, wanted: Wanted) -> Findings:
        return await asyncio.to_thread(self._search, wanted)

    async def fact(self, session: str, seq: int, workspace: str = "") -> Found | None:
        return await asyncio.to_thread(self._fact, Wanted(words="", session=session, workspace=workspace), seq)

    def _search(self, wanted: Wanted) -> Findings:
        words = [(match[1] or match[2]).casefold() for match in WORD.finditer(wanted.words)]
        if not words:
            raise UserError("There is nothing to look for.", kind="nothing_wanted", next=["Give some words."])
        deadline = time.monotonic() + SECONDS
        found: list[Found] = []
        with closing(self._connect()) as db:
            for session in _sessions(db, wanted):
                for place in _within(db, session, wanted, words):
                    if len(found) == wanted.limit:
                        return Findings(found, more=True)
                    found.append(place)
                if time.monotonic() > deadline:
                    return Findings(found, more=True)
        return Findings(found)

    def _fact(self, wanted: Wanted, seq: int) -> Found | None:
        with closing(self._connect()) as db:
            for id in _sessions(db, wanted):
                if _deleted(db, id):
                    continue
                for record in _records(db, id, "seq = ?", [seq]):
                    return _found(record, said_in(event_of(record).body))
        return None

    def _connect(self) -> sqlite3.Connection:
        try:
            db = schema.connect_readonly(self._path)
        except sqlite3.Error as error:
            raise schema.explain(error, self._path) from error
        db.text_factory = schema.text
        return db


def said_in(body: Body) -> str:
    """What a person would look for in a fact; empty where there is nothing of the kind."""
    match body:
        case facts.InputReceived(text=text) | facts.ModelResponded(text=text, role="main"):
            return text
        case facts.ToolCalled(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case facts.ToolFinished(output=output):
            return output
        case _:
            return ""


def _sessions(db: sqlite3.Connection, wanted: Wanted) -> list[str]:
    """The sessions to look at, the one with the newest fact first."""
    rows = db.execute(
        "select session.id from session join event on event.session = session.id and event.seq = session.seq"
        " where substr(session.id, 1, ?) = ? and session.id <> ? and event.ts >= ? order by event.ts desc, session.id",
        (len(wanted.session), wanted.session, wanted.without, wanted.since),
    )
    return [id for (id,) in rows if not wanted.workspace or _place(db, id) == wanted.workspace]


def _place(db: sqlite3.Connection, session: str) -> str:
    """Where a session works, as its first fact says; empty where that cannot be read."""
    for record in _records(db, session, "seq = ?", [1]):
        body = event_of(record).body
        return body.workspace if isinstance(body, facts.SessionCreated) else ""
    return ""


def _within(db: sqlite3.Connection, session: str, wanted: Wanted, words: Sequence[str]) -> Iterator[Found]:
    kinds = [*(kind for kind, role in SPOKEN.items() if wanted.role in (None, role)), *FATES]
    # Most facts are passed over by their bytes alone; only what is left is read.
    plain = [word.encode() for word in words if PLAIN.fullmatch(word)]
    rows = db.execute(
        f"select seq, type, data from event where session = ? and {COUNTED} and ts >= ?"
        f" and type in ({', '.join('?' * len(kinds))}) order by seq desc",
        (session, wanted.since, *kinds),
    )
    fate = ""
    for seq, kind, data in rows:
        if kind in FATES:
            fate = fate or kind
            if fate == "session.deleted":
                return
        elif isinstance(data, bytes) and _holds(data, plain):
            yield from _read(db, session, seq, words)


def _holds(data: bytes, words: Sequence[bytes]) -> bool:
    lowered = data.lower()
    return all(word in lowered for word in words)


def _read(db: sqlite3.Connection, session: str, seq: int, words: Sequence[str]) -> Iterator[Found]:
    for record in _records(db, session, "seq = ?", [seq]):
        text = said_in(event_of(record).body)
        folded = text.casefold()
        if all(word in folded for word in words):
            yield _found(record, _around(text, folded.find(words[0])))


def _records(db: sqlite3.Connection, session: str, where: str, values: Sequence[object]) -> Iterator[Record]:
    rows = db.execute(
        f"select {COLUMNS} from event where session = ? and {COUNTED} and {where} order by seq desc",
        (session, *values),
    )
    return (Record(*row) for row in rows)


def _deleted(db: sqlite3.Connection, session: str) -> bool:
    fates = _records(db, session, "type in (?, ?)", FATES)
    return next((record.type for record in fates), "") == "session.deleted"


def _found(record: Record, text: str) -> Found:
    return Found(
        session=record.session,
        seq=record.seq,
        turn=record.turn,
        ts=record.ts,
        role=SPOKEN.get(record.type, "result"),
        text=text,
    )


def _around(text: str, at: int) -> str:
    """The words near the place, on one line."""
    start, end = max(at - AROUND // 2, 0), at + AROUND
    piece = " ".join(text[start:end].split())
    return f"{'… ' * (start > 0)}{piece}{' …' * (end < len(text))}"
