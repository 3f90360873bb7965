"""Streaming text cut into rows: whole rows go out, the row that still grows is kept."""

from sylph.interfaces.cli.table import width
from sylph.interfaces.render import clean


class Rows:
    """`open` is the row that is not complete yet."""

    def __init__(self) -> None:
        self.open = ""
        self._said = ""

    def add(self, text: str, columns: int) -> str:
        """Takes the next piece; returns the rows that it completes."""
        shown = clean(text) if self._said.strip("\n") else clean(text).lstrip("\n")
        self._said += text
        *whole, last = (self.open + shown).split("\n")
        *rows, self.open = wrapped(last, columns)
        done = [row for full in whole for row in wrapped(full, columns)]
        return "".join(f"{row}\n" for row in [*done, *rows])

    def end(self, text: str, columns: int) -> str:
        """Takes what is still missing of the whole `text`; returns all that was not returned yet."""
        done = self.add(text.removeprefix(self._said), columns) + self.cut()
        self._said = ""
        return done

    def cut(self) -> str:
        """Ends the open row, because something else comes between."""
        row, self.open = self.open, ""
        return f"{row}\n" if row else ""


def wrapped(text: str, columns: int) -> list[str]:
    """`text` in rows that fit, broken at blanks where there are some."""
    rows: list[str] = []
    while width(text) >= columns > 1:
        at = _fit(text, columns - 1)
        blank = text.rfind(" ", 1, at + 1)
        rows.append(text[: blank if blank > 0 else at])
        text = text[blank + 1 :] if blank > 0 else text[at:]
    return [*rows, text]


def _fit(text: str, columns: int) -> int:
    """How many characters of `text` fit; at least one."""
    used = 0
    for at, char in enumerate(text):
        used += width(char)
        if used > columns:
            return max(at, 1)
    return len(text)
