"""Text broken into rows between words: whole lines, and text that is still being written."""

import re

from sylph.interfaces.cli.kit.table import text_width
from sylph.interfaces.text.render import EXACT_STYLES, StyledLine, TextSpan
from sylph.interfaces.text.sanitize import StreamSanitizer, sanitize_text

# Between the characters of these scripts a row may end anywhere.
FREE_SCRIPTS = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
# Compiled when first needed: that takes a while.
TOKENS = rf"\n|[^\S\n]+|[{FREE_SCRIPTS}]|[^\s{FREE_SCRIPTS}]+"


class StreamedText:
    """The pieces of a text as they may be shown. Knows what is still missing when the whole comes."""

    def __init__(self) -> None:
        self._cleaner = StreamSanitizer()
        self._said = ""
        self._begun = False
        self._lost = False

    def add(self, text: str) -> str:
        """The next piece; nothing where some before it were lost."""
        if self._lost:
            return ""
        self._said += text
        return self._trim_start(self._cleaner.add(text))

    def finish(self, whole: str) -> str:
        """What was not shown yet of the whole text."""
        rest = whole.removeprefix(self._said) if not self._said.startswith(whole) else ""
        missing = self._trim_start(self._cleaner.add(rest) + self._cleaner.flush())
        self._said, self._begun = "", False
        return missing

    def mark_lost(self) -> None:
        """Some pieces did not come: only whole texts are shown from here on, until all is forgotten."""
        self._lost = True

    def reset(self) -> None:
        """Another text begins; of this one nothing more comes."""
        self._cleaner, self._said, self._begun, self._lost = StreamSanitizer(), "", False, False

    def _trim_start(self, text: str) -> str:
        text = text if self._begun else text.lstrip("\n")
        self._begun = self._begun or bool(text)
        return text


class WordWrapper:
    """Writes on as text comes. A word that is not complete yet is held back, so that nothing can cut it in two."""

    def __init__(self) -> None:
        self.column = 0
        self._gap = ""
        self._word = ""

    def add(self, text: str, columns: int) -> str:
        """What can be written now."""
        return "".join(self._take_token(token, columns) for token in re.findall(TOKENS, text))

    def flush(self, columns: int) -> str:
        """What was held back, as no more comes."""
        return self._place_word(columns)

    def newline(self) -> str:
        """What goes to the start of a fresh row, where there is need."""
        used, self.column, self._gap = self.column, 0, ""
        return "\n" if used else ""

    def _take_token(self, token: str, columns: int) -> str:
        if token == "\n":
            placed = self._place_word(columns)
            self.column, self._gap = 0, ""
            return f"{placed}\n"
        if token.isspace():
            placed = self._place_word(columns)
            self._gap += token
            return placed
        if re.match(f"[{FREE_SCRIPTS}]", token):
            placed = self._place_word(columns)
            self._word = token
            return placed + self._place_word(columns)
        self._word += token
        return self._place_word(columns) if text_width(self._word) >= columns else ""

    def _place_word(self, columns: int) -> str:
        if not self._word:
            return ""
        gap, word, self._gap, self._word = self._gap.expandtabs(), self._word, "", ""
        fits = not self.column or self.column + len(gap) + text_width(word) <= columns
        used = self.column + len(gap) + text_width(word) if fits else text_width(word)
        # What is longer than a row the terminal itself breaks.
        self.column = used if used <= columns else (used - 1) % columns + 1
        return gap + word if fits else f"\n{word}"


class RowWrapper:
    """Cuts streaming text into rows: whole ones go out, `open` is the one that still grows."""

    def __init__(self) -> None:
        self.open = ""
        self.stream = StreamedText()

    def add(self, text: str, columns: int) -> str:
        """Takes the next piece; returns the rows that it completes."""
        return self._fill_rows(self.stream.add(text), columns)

    def finish(self, text: str, columns: int) -> str:
        """Takes what is still missing of the whole `text`; returns all that was not returned yet."""
        return self._fill_rows(self.stream.finish(text), columns) + self.end_row()

    def end_row(self) -> str:
        """Ends the open row."""
        row, self.open = self.open, ""
        return f"{row}\n" if row else ""

    def break_row(self) -> str:
        """Ends the open row before the word that still grows, because something else comes between."""
        head, _, self.open = self.open.rpartition(" ")
        return f"{head}\n" if head else ""

    def _fill_rows(self, shown: str, columns: int) -> str:
        *whole, last = (self.open + shown).split("\n")
        *rows, self.open = wrap_text(last, columns)
        done = [row for full in whole for row in wrap_text(full, columns)]
        return "".join(f"{row}\n" for row in [*done, *rows])


def wrap_text(text: str, columns: int) -> list[str]:
    """`text` in rows that fit, broken at blanks where there are some."""
    return [text[start:end] for start, end in _row_bounds(text, columns, 0)]


def wrap_line(line: StyledLine, columns: int) -> list[StyledLine]:
    """A styled line in rows that fit, broken at blanks; all begin below the first word of the first one."""
    if any(span.style in EXACT_STYLES for span in line):
        return [line]
    line = tuple(TextSpan(sanitize_text(text), style) for text, style in line)
    text = "".join(span.text for span in line)
    indent = len(text) - len(text.lstrip(" "))
    (first, *rest) = _row_bounds(text, columns, indent if indent < columns // 2 else 0)
    pad = TextSpan(" " * indent)
    return [_slice_line(line, *first), *((pad, *_slice_line(line, *place)) for place in rest)]


def _slice_line(line: StyledLine, start: int, end: int) -> StyledLine:
    """What stands between two places of a line, styled as it was."""
    spans: list[TextSpan] = []
    for text, style in line:
        spans.append(TextSpan(text[max(start, 0) : max(end, 0)], style))
        start, end = start - len(text), end - len(text)
    return tuple(span for span in spans if span.text)


def _row_bounds(text: str, columns: int, indent: int) -> list[tuple[int, int]]:
    """Where each row begins and ends; those after the first have less room, by `indent`."""
    places: list[tuple[int, int]] = []
    start, room = 0, columns
    while text_width(text[start:]) >= room > 1:
        at = start + fitting_length(text[start:], room - 1)
        blank = text.rfind(" ", start + _row_margin(text, start), at + 1)
        places.append((start, blank if blank > 0 else at))
        start = blank + 1 if blank > 0 else at
        room = columns - indent
    return [*places, (start, len(text))]


def _row_margin(text: str, start: int) -> int:
    """The blanks that a row begins with, and its first character: no row ends there."""
    rest = text[start:]
    return len(rest) - len(rest.lstrip(" ")) + 1


def fitting_length(text: str, columns: int) -> int:
    """How many characters of `text` fit; at least one."""
    used = 0
    for at, char in enumerate(text):
        used += text_width(char)
        if used > columns:
            return max(at, 1)
    return len(text)
