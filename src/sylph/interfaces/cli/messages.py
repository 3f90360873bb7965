"""The messages of a chat: those typed here show themselves, those that come through another door are shown."""

from collections.abc import Generator
from contextlib import contextmanager

from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.core.facts import HistoryRewound, InputCancelled, InputDelivered, InputReceived, TurnStarted
from sylph.interfaces.render import Line, Span, flat, line


class Messages:
    """Knows what was said here."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._waiting = dict[str, str]()
        self._again = False

    @contextmanager
    def own(self, text: str) -> Generator[None, None, None]:
        """While inside, the text is sent: if it is taken, it will come back as an event."""
        self._said.append(text)
        try:
            yield
        except UserError:
            self._said.remove(text)
            raise

    def see(self, event: Event) -> list[Line]:
        """What is to be shown of a message that has come in."""
        match event.body:
            case HistoryRewound(why="retry"):
                self._again = True
                return []
            case InputReceived(id=id, text=text, delivery=delivery):
                self._waiting[id] = text
                return [*self._quoted(text), *_queued(delivery)]
            case InputDelivered(id=id) | TurnStarted(input=id):
                self._waiting.pop(id, None)
                return []
            case InputCancelled(id=id) if id in self._waiting:
                return [line(f"withdrawn, not heard: {flat(self._waiting.pop(id), 200)}", "dim")]
            case _:
                return []

    def _quoted(self, text: str) -> list[Line]:
        again, self._again = self._again, False
        if not again and text in self._said:
            self._said.remove(text)
            return []
        why = "once more" if again else "from elsewhere"
        return [(Span("> ", "bold"), Span(flat(text, 200)), Span(f" ({why})", "dim"))]


def _queued(delivery: str) -> list[Line]:
    if delivery == "start":
        return []
    when = "between two steps" if delivery == "steer" else "when the turn is done"
    return [line(f"queued: it is heard {when} (/queue)", "dim")]
