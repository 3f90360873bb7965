"""Text that comes in pieces: what is cut in two by chance is held back until it is whole."""

import re
from collections.abc import Callable

from sylph.engine.redact.placeholder import CLOSE, LONGEST, OPEN
from sylph.engine.redact.redactor import NoRedaction

# Of a line without an end, and of a private key without one, so much is waited for.
MAX_LINE, MAX_KEY = 8_192, 20_000
_BEGUN = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?![\s\S]*-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)"
)


def complete_length(text: str, lines: int) -> int:
    """How much of a text that goes on can be judged: its whole `lines`, but no key before its end."""
    at = lines or (len(text) if len(text) > MAX_LINE else 0)
    begun = _BEGUN.search(text, 0, at)
    return min(at, begun.start()) if begun and len(text) - begun.start() < MAX_KEY else at


class StreamRestorer:
    """Pieces of an answer with the values of its placeholders; half a placeholder waits for its other half."""

    def __init__(self, redactor: NoRedaction) -> None:
        self._redactor, self._held = redactor, ""

    def restore_piece(self, piece: str) -> str:
        if not self._held and OPEN not in piece:
            return piece
        text = self._held + piece
        at = text.rfind(OPEN)
        whole = at < 0 or CLOSE in text[at:] or len(text) - at > LONGEST
        out, self._held = (text, "") if whole else (text[:at], text[at:])
        return self._redactor.restore_text(out)

    def flush(self) -> str:
        """What still waited: there is no more to come."""
        held, self._held = self._held, ""
        return held


class StreamRedactor:
    """Shows an output with placeholders for its secrets, line by line; a key of many lines waits for its end."""

    def __init__(self, redactor: NoRedaction, show: Callable[[str], None]) -> None:
        self._redactor, self._show, self._held = redactor, show, ""

    def __call__(self, piece: str) -> None:
        if not self._redactor.hides:
            self._show(piece)
            return
        text = self._held + piece
        at = complete_length(text, max(text.rfind("\n"), text.rfind("\r")) + 1)
        self._held = text[at:]
        if at:
            self._show(self._redactor.redact_text(text[:at]))

    def flush(self) -> None:
        """Shows what still waited: there is no more to come."""
        held, self._held = self._held, ""
        if held:
            self._show(self._redactor.redact_text(held))
