"""Text broken into rows between words: whole lines, and text that is still being written."""

import re

from sylph.interfaces.clean import Cleaner, clean
from sylph.interfaces.cli.table import width
from sylph.interfaces.render import EXACT, Line, Span

# Between the characters of these scripts a row may end anywhere.
FREE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
# Compiled when first needed: that takes a while.
TOKENS = rf"\n|[^\S\n]+|[{FREE}]|[^\s{FREE}]+"


class Stream:
    """The pieces of a text as they may be shown. Knows what is still missing when the whole comes."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._said = ""
        self._begun = False
        self._lost = False

    def add(self, text: str) -> str:
        """The next piece; nothing where some before it were lost."""
        if self._lost:
            return ""
        self._said += text
        return self._shown(self._cleaner.add(text))

    def end(self, whole: str) -> str:
        """What was not shown yet of the whole text."""
        rest = whole.removeprefix(self._said) if not self._said.startswith(whole) else ""
        missing = self._shown(self._cleaner.add(rest) + self._cleaner.end())
        self._said, self._begun = "", False
        return missing

    def lose(self) -> None:
        """Some pieces did not come: only whole texts are shown from here on, until all is forgotten."""
        self._lost = True

    def forget(self) -> None:
        """Another text begins; of this one nothing more comes."""
        self._cleaner, self._said, self._begun, self._lost = Cleaner(), "", False, False

    def _shown(self, text: str) -> str:
        text = text if self._begun else text.lstrip("\n")
        self._begun = self._begun or bool(text)
        return text


class Words:
    """Writes on as text comes. A word that is not complete yet is held back, so that nothing can cut it in two."""

    def __init__(self) -> None:
        self.column = 0
        self._gap = ""
        self._word = ""

    def add(self, text: str, columns: int) -> str:
        """What can be written now."""
        return "".join(self._take(token, columns) for token in re.findall(TOKENS, text))

    def cut(self, columns: int) -> str:
        """What was held back, as no more comes."""
        return self._place(columns)

    def newline(self) -> str:
        """What goes to the start of a fresh row, where there is need."""
        used, self.column, self._gap = self.column, 0, ""
        return "\n" if used else ""

    def _take(self, token: str, columns: int) -> str:
        if token == "\n":
            placed = self._place(columns)
            self.column, self._gap = 0, ""
            return f"{placed}\n"
        if token.isspace():
            placed = self._place(columns)
            self._gap += token
            return placed
        if re.match(f"[{FREE}]", token):
            placed = self._place(columns)
            self._word = token
            return placed + self._place(columns)
        self._word += token
        return self._place(columns) if width(self._word) >= columns else ""

    def _place(self, columns: int) -> str:
        if not self._word:
            return ""
        gap, word, self._gap, self._word = self._gap.expandtabs(), self._word, "", ""
        fits = not self.column or self.column + len(gap) + width(word) <= columns
        used = self.column + len(gap) + width(word) if fits else width(word)
        # What is longer than a row the terminal itself breaks.
        self.column = used if used <= columns else (used - 1) % columns + 1
        return gap + word if fits else f"\n{word}"


class Rows:
    """Cuts streaming text into rows: whole ones go out, `open` is the one that still grows."""

    def __init__(self) -> None:
        self.open = ""
        self.stream = Stream()

    def add(self, text: str, columns: int) -> str:
        """Takes the next piece; returns the rows that it completes."""
        return self._fill(self.stream.add(text), columns)

    def end(self, text: str, columns: int) -> str:
        """Takes what is still missing of the whole `text`; returns all that was not returned yet."""
        return self._fill(self.stream.end(text), columns) + self.cut()

    def cut(self) -> str:
        """Ends the open row."""
        row, self.open = self.open, ""
        return f"{row}\n" if row else ""

    def pause(self) -> str:
        """Ends the open row before the word that still grows, because something else comes between."""
        head, _, self.open = self.open.rpartition(" ")
        return f"{head}\n" if head else ""

    def _fill(self, shown: str, columns: int) -> str:
        *whole, last = (self.open + shown).split("\n")
        *rows, self.open = wrapped(last, columns)
        done = [row for full in whole for row in wrapped(full, columns)]
        return "".join(f"{row}\n" for row in [*done, *rows])


def wrapped(text: str, columns: int) -> list[str]:
    """`text` in rows that fit, broken at blanks where there are some."""
    return [text[start:end] for start, end in _places(text, columns, 0)]


def folded(line: Line, columns: int) -> list[Line]:
    """A styled line in rows that fit, broken at blanks; all begin below the first word of the first one."""
    if any(span.style in EXACT for span in line):
        return [line]
    line = tuple(Span(clean(text), style) for text, style in line)
    text = "".join(span.text for span in line)
    indent = len(text) - len(text.lstrip(" "))
    (first, *rest) = _places(text, columns, indent if indent < columns // 2 else 0)
    pad = Span(" " * indent)
    return [_part(line, *first), *((pad, *_part(line, *place)) for place in rest)]


def _part(line: Line, start: int, end: int) -> Line:
    """What stands between two places of a line, styled as it was."""
    spans: list[Span] = []
    for text, style in line:
        spans.append(Span(text[max(start, 0) : max(end, 0)], style))
        start, end = start - len(text), end - len(text)
    return tuple(span for span in spans if span.text)


def _places(text: str, columns: int, indent: int) -> list[tuple[int, int]]:
    """Where each row begins and ends; those after the first have less room, by `indent`."""
    places: list[tuple[int, int]] = []
    start, room = 0, columns
    while width(text[start:]) >= room > 1:
        at = start + fit(text[start:], room - 1)
        blank = text.rfind(" ", start + _margin(text, start), at + 1)
        places.append((start, blank if blank > 0 else at))
        start = blank + 1 if blank > 0 else at
        room = columns - indent
    return [*places, (start, len(text))]


def _margin(text: str, start: int) -> int:
    """The blanks that a row begins with, and its first character: no row ends there."""
    rest = text[start:]
    return len(rest) - len(rest.lstrip(" ")) + 1


def fit(text: str, columns: int) -> int:
    """How many characters of `text` fit; at least one."""
    used = 0
    for at, char in enumerate(text):
        used += width(char)
        if used > columns:
            return max(at, 1)
    return len(text)
