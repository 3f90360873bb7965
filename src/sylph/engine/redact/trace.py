"""Events for whoever may keep them: also what the model says, as it says it, without secrets.

A person who looks on sees each letter as it comes. What is written down waits for the end of a word, and where a line
may hold a secret, for the end of the line.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from sylph.core import signals
from sylph.core.events import Event
from sylph.engine.redact.stream import complete
from sylph.engine.redact.veil import Veil

Delta = signals.TextDelta | signals.ReasoningDelta | signals.ArgsDelta


class Trace:
    def __init__(self, veil: Veil) -> None:
        self._veil = veil
        self._held: dict[tuple[str, int], Event] = {}

    def see(self, event: Event) -> Iterator[Event]:
        """The events to be kept in the place of this one."""
        if not self._veil.hides:
            yield event
        elif isinstance(event.body, Delta):
            yield from self._said(event, event.body)
        else:
            yield from self.rest()
            yield event

    def rest(self) -> Iterator[Event]:
        """What still waited."""
        held, self._held = self._held, {}
        for event in held.values():
            if isinstance(event.body, Delta) and event.body.text:
                yield _with(event, event.body, self._veil.text(event.body.text))

    def _said(self, event: Event, body: Delta) -> Iterator[Event]:
        place = (body.wire, body.index if isinstance(body, signals.ArgsDelta) else 0)
        before = self._held[place].body if place in self._held else None
        text = (before.text if isinstance(before, Delta) else "") + body.text
        upto = self._safe(text)
        self._held[place] = _with(event, body, text[upto:])
        if upto:
            yield _with(event, body, self._veil.text(text[:upto]))

    def _safe(self, text: str) -> int:
        """How much of it can be told: whole lines, and whole words of a line that is not suspect."""
        line = text.rfind("\n") + 1
        if "-----" not in text and not self._veil.suspects(text[line:]):
            line = max(line, text.rfind(" ") + 1)
        return complete(text, line)


def _with(event: Event, body: Delta, text: str) -> Event:
    return replace(event, body=replace(body, text=text))
