"""The messages of a chat: those typed here show themselves, those that come through another door are shown."""

from collections.abc import Generator
from contextlib import contextmanager

from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.core.facts.turn import HistoryRewound, InputCancelled, InputDelivered, InputReceived, TurnStarted
from sylph.interfaces.text.render import StyledLine, TextSpan, one_line, styled_line


class MessageEcho:
    """Knows what was said here."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._waiting = dict[str, str]()
        self._again = False

    @contextmanager
    def expect_message(self, text: str) -> Generator[None, None, None]:
        """While inside, the text is sent: if it is taken, it will come back as an event."""
        self._said.append(text)
        try:
            yield
        except UserError:
            self._said.remove(text)
            raise

    def event_lines(self, event: Event) -> list[StyledLine]:
        """What is to be shown of a message that has come in."""
        match event.body:
            case HistoryRewound(why="retry"):
                self._again = True
                return []
            case InputReceived(id=id, text=text, delivery=delivery):
                self._waiting[id] = text
                return [*self._quote_message(text), *_queue_notice(delivery)]
            case InputDelivered(id=id) | TurnStarted(input=id):
                self._waiting.pop(id, None)
                return []
            case InputCancelled(id=id) if id in self._waiting:
                return [styled_line(f"withdrawn, not heard: {one_line(self._waiting.pop(id), 200)}", "dim")]
            case _:
                return []

    def _quote_message(self, text: str) -> list[StyledLine]:
        again, self._again = self._again, False
        if not again and text in self._said:
            self._said.remove(text)
            return []
        why = "once more" if again else "from elsewhere"
        return [(TextSpan("> ", "bold"), TextSpan(one_line(text, 200)), TextSpan(f" ({why})", "dim"))]


def _queue_notice(delivery: str) -> list[StyledLine]:
    if delivery == "start":
        return []
    when = "between two steps" if delivery == "steer" else "when the turn is done"
    return [styled_line(f"queued: it is heard {when} (/queue)", "dim")]
