"""Pages: the parameters every list takes, and an order of sessions that stands still while they change."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import Path, Query

from sylph.core.errors import UserError
from sylph.engine.folds.session_list import SessionList, SessionListItem
from sylph.interfaces.http.kit.route import ListPage

SessionId = Annotated[
    str, Path(max_length=100, description="The id of a session, the beginning of one, or `last`.", examples=["last"])
]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=200, description="Where to go on: the `next` of the page before.")]


def page_of_sessions(
    cards: SessionList, shown: Iterable[SessionListItem], cursor: str, limit: int
) -> ListPage[SessionListItem]:
    """The latest first, in the order of the moment when the first page was asked for: the log can tell that order.

    So whoever goes through all pages sees each session once, even if some have changed meanwhile.
    """
    shown = list(shown)
    then, last = _parse_session_cursor(cursor) if cursor else (max((card.updated for card in shown), default=0), None)
    placed = [(cards.last_update_at(card, then), card.id, card) for card in shown]
    placed = [each for each in placed if each[0] and (last is None or each[:2] < last)]
    placed.sort(key=lambda each: each[:2], reverse=True)
    more = placed[limit - 1] if len(placed) > limit else None
    return ListPage(items=[card for *_, card in placed[:limit]], next=f"{then}.{more[0]}.{more[1]}" if more else None)


def _parse_session_cursor(cursor: str) -> tuple[int, tuple[int, str]]:
    then, _, rest = cursor.partition(".")
    at, _, id = rest.partition(".")
    if not (_is_number(then) and _is_number(at) and id):
        raise bad_cursor_error(cursor)
    return int(then), (int(at), id)


def parse_number_cursor(cursor: str) -> int:
    """A cursor that is a number; 0 for none."""
    if cursor and not _is_number(cursor):
        raise bad_cursor_error(cursor)
    return int(cursor or 0)


def _is_number(text: str) -> bool:
    # As many digits as the store can count.
    return text.isascii() and text.isdecimal() and len(text) < 19


def bad_cursor_error(cursor: str) -> UserError:
    return UserError(f"{cursor!r} is no cursor.", kind="bad_cursor", next=["leave it out to begin at the first page"])
