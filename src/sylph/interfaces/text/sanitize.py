"""Text from anywhere, made unable to control a terminal: hidden characters go, or are shown as what they are."""

import re

# Patterns, compiled when first needed. Escape sequences go as a whole, so that no litter stays; then every control
# character but tab and newline, and what turns the direction of writing. No sequence reaches over the end of a line:
# one that is never closed must not swallow the rest of a text.
ESCAPES = (
    r"\x1b(?:\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\x1b\n]*\x1b\\|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
UNFINISHED = r"(?:\x1b(?:\][^\x07\x1b\n]*\x1b?|[PX^_][^\x1b\n]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)|\x9b[0-?]*[ -/]*)\Z"
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
# Also what has no width. A joiner between two characters that are not ASCII belongs to them: emoji are made so.
HIDDEN = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]|(?<![^\x00-\x7f])\u200d"
)
# A sequence that is longer than this is none.
LONGEST_ESCAPE = 4096


def sanitize_text(text: str) -> str:
    """Text that cannot control a terminal."""
    return text if text.isprintable() else re.sub(CONTROLS, "", re.sub(ESCAPES, "", text))


def escape_hidden(text: str) -> str:
    """Text in which nothing hides: what a terminal would obey or not show is written as an escape."""
    if text.isprintable():
        return text
    return re.sub(HIDDEN, lambda found: found[0].encode("unicode_escape").decode(), text)


def has_hidden(text: str) -> bool:
    """Whether there is anything in it that a terminal would obey or not show. A Windows line end is not."""
    return not text.isprintable() and re.search(HIDDEN, text.replace("\r\n", "\n")) is not None


class StreamSanitizer:
    """Cleans a text that comes in pieces: a sequence that is cut in two by them is still one sequence."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        text = self._held + text
        found = re.search(UNFINISHED, text) if "\x1b" in text or "\x9b" in text else None
        at = found.start() if found and len(text) - found.start() < LONGEST_ESCAPE else len(text)
        self._held = text[at:]
        return sanitize_text(text[:at])

    def flush(self) -> str:
        """What was held back, as no more comes."""
        held, self._held = self._held, ""
        return sanitize_text(held)
