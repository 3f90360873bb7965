"""Where a client stands in several sessions at once: the `id` of a multiplexed stream's events."""

import re

from msgspec import Struct, field

from sylph.core.errors import UserError
from sylph.interfaces.http.live.messages import MOST

# `session:13;session:40@1762000000000`: facts told of each, and up to when of changes to all.
PLACE = re.compile(r"([A-Za-z0-9_-]{1,100})(?::(\d{1,15}))?")
LONGEST = 8000


class Cursor(Struct, kw_only=True):
    places: dict[str, int] = field(default_factory=dict[str, int])
    at: int = 0
    """The newest change to any session that was told, in ms since 1970."""

    def text(self) -> str:
        return ";".join(f"{session}:{seq}" for session, seq in self.places.items()) + f"@{self.at}"


def read(given: str) -> Cursor:
    """A cursor as the client gave it back. Raises UserError where it is none of ours."""
    places, _, at = given.partition("@")
    if len(given) > LONGEST or not (at.isascii() and at.isdecimal() and len(at) < 16):
        raise _wrong(given)
    return Cursor(places=read_places(places, ";"), at=int(at))


def read_places(given: str, between: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in given.split(between) if given else ():
        place = PLACE.fullmatch(part.strip())
        if place is None:
            raise _wrong(given)
        found[place[1]] = int(place[2] or 0)
    return bounded(found)


def bounded(places: dict[str, int]) -> dict[str, int]:
    if len(places) > MOST:
        raise UserError(
            f"One stream follows {MOST} sessions at the most.", kind="too_many_sessions", next=["follow fewer of them"]
        )
    return places


def number(given: str) -> int:
    """The place in one session: the number of a fact."""
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise _wrong(given)
    return int(given)


def _wrong(given: str) -> UserError:
    return UserError(
        f"{given[:60]!r} is not a place in a stream.",
        kind="bad_cursor",
        next=["give back the last `id` as it came", "leave it out to begin at the start"],
    )
