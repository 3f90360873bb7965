"""Columns that line up, also with wide characters; where there is no room for all, those that matter least go."""

import unicodedata
from collections.abc import Sequence


def align_rows(rows: Sequence[Sequence[str]], *, gap: str = "  ") -> list[str]:
    """Each row as one line; every column as wide as its widest cell, the last one ragged."""
    if not rows:
        return []
    widths = [max(text_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        gap.join(cell + " " * (wide - text_width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def fit_rows(rows: Sequence[Sequence[str]], room: int, drop: Sequence[int]) -> list[str]:
    """The same in `room` columns: left out are, as far as need be, the columns `drop`, in that order."""
    kept = list(range(len(rows[0]))) if rows else []
    table = align_rows(rows)
    for column in drop:
        if max(map(text_width, table), default=0) <= room:
            break
        kept.remove(column)
        table = align_rows([[row[at] for at in kept] for row in rows])
    return table


def text_width(text: str) -> int:
    """How many columns a terminal needs for `text`."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
