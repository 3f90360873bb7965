"""Where a client stands in several sessions at once: the `id` of a multiplexed stream's events."""

import re

from msgspec import Struct, field

from sylph.core.errors import UserError
from sylph.interfaces.http.hub.messages import MAX_SESSIONS

# `session:13;session:40@1762000000000`: facts told of each, and up to when of changes to all.
POSITION_PATTERN = re.compile(r"([A-Za-z0-9_-]{1,100})(?::(\d{1,15}))?")
MAX_LENGTH = 8000


class StreamCursor(Struct, kw_only=True):
    positions: dict[str, int] = field(default_factory=dict[str, int])
    changed_at: int = 0
    """The newest change to any session that was told, in ms since 1970."""

    def to_text(self) -> str:
        return ";".join(f"{session}:{seq}" for session, seq in self.positions.items()) + f"@{self.changed_at}"


def parse_cursor(given: str) -> StreamCursor:
    """A cursor as the client gave it back. Raises UserError where it is none of ours."""
    places, _, at = given.partition("@")
    if len(given) > MAX_LENGTH or not (at.isascii() and at.isdecimal() and len(at) < 16):
        raise _bad_cursor_error(given)
    return StreamCursor(positions=parse_positions(places, ";"), changed_at=int(at))


def parse_positions(given: str, between: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in given.split(between) if given else ():
        place = POSITION_PATTERN.fullmatch(part.strip())
        if place is None:
            raise _bad_cursor_error(given)
        found[place[1]] = int(place[2] or 0)
    return check_session_limit(found)


def check_session_limit(places: dict[str, int]) -> dict[str, int]:
    if len(places) > MAX_SESSIONS:
        raise UserError(
            f"One stream follows {MAX_SESSIONS} sessions at the most.",
            kind="too_many_sessions",
            next=["follow fewer of them"],
        )
    return places


def parse_fact_number(given: str) -> int:
    """The place in one session: the number of a fact."""
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise _bad_cursor_error(given)
    return int(given)


def _bad_cursor_error(given: str) -> UserError:
    return UserError(
        f"{given[:60]!r} is not a place in a stream.",
        kind="bad_cursor",
        next=["give back the last `id` as it came", "leave it out to begin at the start"],
    )
