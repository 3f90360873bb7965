"""Styled lines as terminal text."""

from collections.abc import Iterable

from sylph.interfaces.clean import clean
from sylph.interfaces.render import Line, Style

CODES: dict[Style, str] = {
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


def paint(line: Line, *, colour: bool) -> str:
    """One line. What it says is cleaned here, last, so that nothing unclean can reach a terminal."""
    return "".join(_styled(clean(text), CODES[style] if colour else "") for text, style in line)


def painted(lines: Iterable[Line], *, colour: bool) -> str:
    return "".join(f"{paint(line, colour=colour)}\n" for line in lines)


def _styled(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
