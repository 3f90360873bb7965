"""The contract of looking through everything that was ever said and done."""

from typing import Literal, Protocol

import msgspec
from msgspec import Struct

HistoryRole = Literal["user", "assistant", "call", "result"]


class HistoryQuery(Struct, frozen=True, kw_only=True):
    """What to look for: every word, in any case; a piece in quotes as it stands. `session` may be a beginning."""

    words: str
    session: str = ""
    since: int = 0
    """Milliseconds since 1970."""
    role: HistoryRole | None = None
    limit: int = 20
    without: str = ""
    """A session that is not looked at."""
    workspace: str = ""
    """Only sessions that work here."""


class HistoryMatch(msgspec.Struct, frozen=True, kw_only=True):
    """One place: the fact `seq` of a session, and what it says around the words."""

    session: str
    seq: int
    turn: str
    ts: int
    role: HistoryRole
    text: str


class HistoryMatches(Struct, frozen=True):
    """The newest places first; `more` tells that there may be others."""

    found: list[HistoryMatch]
    more: bool = False


class HistorySearch(Protocol):
    """All sessions but the deleted ones."""

    async def search(self, wanted: HistoryQuery) -> HistoryMatches: ...

    async def fact(self, session: str, seq: int, workspace: str = "") -> HistoryMatch | None:
        """All that one fact says; None where there is none, it says nothing, or it is of another workspace."""
        ...
