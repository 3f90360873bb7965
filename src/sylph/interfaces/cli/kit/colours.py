"""Styled lines as terminal text."""

from collections.abc import Iterable

from sylph.interfaces.text.render import StyledLine, TextStyle
from sylph.interfaces.text.sanitize import sanitize_text

ANSI_CODES: dict[TextStyle, str] = {
    "plain": "",
    "dim": "2",
    "bold": "1",
    "ok": "32",
    "bad": "31",
    "warn": "33",
    "code": "",
    "add": "32",
    "del": "31",
}


def paint_line(line: StyledLine, *, colour: bool) -> str:
    """One line. What it says is cleaned here, last, so that nothing unclean can reach a terminal."""
    return "".join(_apply_code(sanitize_text(text), ANSI_CODES[style] if colour else "") for text, style in line)


def paint_lines(lines: Iterable[StyledLine], *, colour: bool) -> str:
    return "".join(f"{paint_line(line, colour=colour)}\n" for line in lines)


def _apply_code(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
