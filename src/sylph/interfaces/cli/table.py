"""Columns that line up, also with wide characters; no more than that."""

import unicodedata
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, gap: str = "  ") -> list[str]:
    """Each row as one line; every column as wide as its widest cell, the last one ragged."""
    if not rows:
        return []
    widths = [max(width(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        gap.join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def width(text: str) -> int:
    """How many columns a terminal needs for `text`."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
