"""Streaming text cut into rows: whole rows go out, the row that still grows is kept."""

from sylph.interfaces.cli.table import width


class Rows:
    """`open` is the row that is not complete yet."""

    def __init__(self) -> None:
        self.open = ""
        self._said = ""

    def add(self, text: str, columns: int) -> str:
        """Takes the next piece; returns the rows that it completes."""
        if not self._said:
            text = text.lstrip("\n")
        self._said += text
        *whole, self.open = (self.open + text).split("\n")
        done = [row for full in whole for row in (*wrapped(full, columns), "")[:-1] or [""]]
        *rows, self.open = wrapped(self.open, columns) or [""]
        return "".join(f"{row}\n" for row in [*done, *rows])

    def end(self, text: str, columns: int) -> str:
        """Takes what is missing of the whole `text`, and closes the open row."""
        done = self.add(text.removeprefix(self._said), columns) if text else ""
        last, self.open, self._said = self.open, "", ""
        return done + (f"{last}\n" if last else "")


def wrapped(text: str, columns: int) -> list[str]:
    """`text` in rows that fit, broken at blanks where there are some."""
    rows: list[str] = []
    while width(text) >= columns > 1:
        at = _fit(text, columns - 1)
        blank = text.rfind(" ", 1, at + 1)
        cut = blank if blank > 0 else at
        rows.append(text[:cut])
        text = text[cut:].removeprefix(" ") if blank > 0 else text[cut:]
    return [*rows, text]


def _fit(text: str, columns: int) -> int:
    """How many characters of `text` fit."""
    used = 0
    for at, char in enumerate(text):
        used += width(char)
        if used > columns:
            return max(at, 1)
    return len(text)
