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
from sylph.core.errors import UserError
from sylph.core.events import EventBody
from sylph.core.history_search import HistoryMatch, HistoryMatches, HistoryQuery, HistoryRole
from sylph.engine.log import schema
from sylph.engine.log.hash_chain import LogRecord, event_from_record
from sylph.engine.log.store import RECORD_COLUMNS, VALID_SEQ

SEARCH_SECONDS = 10.0
EXCERPT_CHARS = 200
SPEAKER_BY_TYPE: dict[str, HistoryRole] = {
    "input.received": "user",
    "model.responded": "assistant",
    "tool.called": "call",
    "tool.finished": "result",
}
DELETION_TYPES = ("session.deleted", "session.restored")
WORD_PATTERN = re.compile(r'"([^"]+)"|(\S+)')
# What stands in JSON as it is said.
PLAIN_ASCII = re.compile(r"[ !#-\[\]-~]+")


class LogSearch:
    """Reads on a connection and in a thread of its own: neither the writer nor the loop waits for it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def search(self, wanted: HistoryQuery) -> HistoryMatches:
        return await asyncio.to_thread(self._search_sessions, wanted)

    async def fact(self, session: str, seq: int, workspace: str = "") -> HistoryMatch | None:
        return await asyncio.to_thread(
            self._find_fact, HistoryQuery(words="", session=session, workspace=workspace), seq
        )

    def _search_sessions(self, wanted: HistoryQuery) -> HistoryMatches:
        words = [(match[1] or match[2]).casefold() for match in WORD_PATTERN.finditer(wanted.words)]
        if not words:
            raise UserError("There is nothing to look for.", kind="nothing_wanted", next=["Give some words."])
        deadline = time.monotonic() + SEARCH_SECONDS
        found: list[HistoryMatch] = []
        with closing(self._open_connection()) as db:
            for session in _sessions_to_search(db, wanted):
                for place in _search_session(db, session, wanted, words):
                    if len(found) == wanted.limit:
                        return HistoryMatches(found, more=True)
                    found.append(place)
                if time.monotonic() > deadline:
                    return HistoryMatches(found, more=True)
        return HistoryMatches(found)

    def _find_fact(self, wanted: HistoryQuery, seq: int) -> HistoryMatch | None:
        with closing(self._open_connection()) as db:
            for id in _sessions_to_search(db, wanted):
                if _is_deleted(db, id):
                    continue
                for record in _select_records(db, id, "seq = ?", [seq]):
                    return _build_match(record, searchable_text(event_from_record(record).body))
        return None

    def _open_connection(self) -> sqlite3.Connection:
        try:
            db = schema.connect_readonly(self._path)
        except sqlite3.Error as error:
            raise schema.explain_error(error, self._path) from error
        db.text_factory = schema.decode_text
        return db


def searchable_text(body: EventBody) -> str:
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


def _sessions_to_search(db: sqlite3.Connection, wanted: HistoryQuery) -> list[str]:
    """The sessions to look at, the one with the newest fact first."""
    rows = db.execute(
        "select session.id from session join event on event.session = session.id and event.seq = session.seq"
        " where substr(session.id, 1, ?) = ? and session.id <> ? and event.ts >= ? order by event.ts desc, session.id",
        (len(wanted.session), wanted.session, wanted.without, wanted.since),
    )
    return [id for (id,) in rows if not wanted.workspace or _workspace_of(db, id) == wanted.workspace]


def _workspace_of(db: sqlite3.Connection, session: str) -> str:
    """Where a session works, as its first fact says; empty where that cannot be read."""
    for record in _select_records(db, session, "seq = ?", [1]):
        body = event_from_record(record).body
        return body.workspace if isinstance(body, facts.SessionCreated) else ""
    return ""


def _search_session(
    db: sqlite3.Connection, session: str, wanted: HistoryQuery, words: Sequence[str]
) -> Iterator[HistoryMatch]:
    kinds = [*(kind for kind, role in SPEAKER_BY_TYPE.items() if wanted.role in (None, role)), *DELETION_TYPES]
    # Most facts are passed over by their bytes alone; only what is left is read.
    plain = [word.encode() for word in words if PLAIN_ASCII.fullmatch(word)]
    rows = db.execute(
        f"select seq, type, data from event where session = ? and {VALID_SEQ} and ts >= ?"
        f" and type in ({', '.join('?' * len(kinds))}) order by seq desc",
        (session, wanted.since, *kinds),
    )
    fate = ""
    for seq, kind, data in rows:
        if kind in DELETION_TYPES:
            fate = fate or kind
            if fate == "session.deleted":
                return
        elif isinstance(data, bytes) and _contains_all(data, plain):
            yield from _match_fact(db, session, seq, words)


def _contains_all(data: bytes, words: Sequence[bytes]) -> bool:
    lowered = data.lower()
    return all(word in lowered for word in words)


def _match_fact(db: sqlite3.Connection, session: str, seq: int, words: Sequence[str]) -> Iterator[HistoryMatch]:
    for record in _select_records(db, session, "seq = ?", [seq]):
        text = searchable_text(event_from_record(record).body)
        folded = text.casefold()
        if all(word in folded for word in words):
            yield _build_match(record, _excerpt_around(text, folded.find(words[0])))


def _select_records(db: sqlite3.Connection, session: str, where: str, values: Sequence[object]) -> Iterator[LogRecord]:
    rows = db.execute(
        f"select {RECORD_COLUMNS} from event where session = ? and {VALID_SEQ} and {where} order by seq desc",
        (session, *values),
    )
    return (LogRecord(*row) for row in rows)


def _is_deleted(db: sqlite3.Connection, session: str) -> bool:
    fates = _select_records(db, session, "type in (?, ?)", DELETION_TYPES)
    return next((record.type for record in fates), "") == "session.deleted"


def _build_match(record: LogRecord, text: str) -> HistoryMatch:
    return HistoryMatch(
        session=record.session,
        seq=record.seq,
        turn=record.turn,
        ts=record.ts,
        role=SPEAKER_BY_TYPE.get(record.type, "result"),
        text=text,
    )


def _excerpt_around(text: str, at: int) -> str:
    """The words near the place, on one line."""
    start, end = max(at - EXCERPT_CHARS // 2, 0), at + EXCERPT_CHARS
    piece = " ".join(text[start:end].split())
    return f"{'… ' * (start > 0)}{piece}{' …' * (end < len(text))}"
