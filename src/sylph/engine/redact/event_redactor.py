"""Events for whoever may keep them: also what the model says, as it says it, without secrets.

A person who looks on sees each letter as it comes. What is written down waits for the end of a word, and where a line
may hold a secret, for the end of the line.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from sylph.core import signals
from sylph.core.events import Event
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.redact.stream import complete_length

Delta = signals.TextDelta | signals.ReasoningDelta | signals.ArgsDelta


class EventRedactor:
    def __init__(self, redactor: NoRedaction) -> None:
        self._redactor = redactor
        self._held: dict[tuple[str, int], Event] = {}

    def redact_event(self, event: Event) -> Iterator[Event]:
        """The events to be kept in the place of this one."""
        if not self._redactor.hides:
            yield event
        elif isinstance(event.body, Delta):
            yield from self._redact_delta(event, event.body)
        else:
            yield from self.flush()
            yield event

    def flush(self) -> Iterator[Event]:
        """What still waited."""
        held, self._held = self._held, {}
        for event in held.values():
            if isinstance(event.body, Delta) and event.body.text:
                yield _with_text(event, event.body, self._redactor.redact_text(event.body.text))

    def _redact_delta(self, event: Event, body: Delta) -> Iterator[Event]:
        place = (body.wire, body.index if isinstance(body, signals.ArgsDelta) else 0)
        before = self._held[place].body if place in self._held else None
        text = (before.text if isinstance(before, Delta) else "") + body.text
        upto = self._safe_length(text)
        self._held[place] = _with_text(event, body, text[upto:])
        if upto:
            yield _with_text(event, body, self._redactor.redact_text(text[:upto]))

    def _safe_length(self, text: str) -> int:
        """How much of it can be told: whole lines, and whole words of a line that is not suspect."""
        line = text.rfind("\n") + 1
        if "-----" not in text and not self._redactor.hints_at_secret(text[line:]):
            line = max(line, text.rfind(" ") + 1)
        return complete_length(text, line)


def _with_text(event: Event, body: Delta, text: str) -> Event:
    return replace(event, body=replace(body, text=text))
