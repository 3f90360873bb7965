"""One turn as such a client sees it: a fold into replies, each of which ends with the turn or with a question."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from sylph.core import facts, signals
from sylph.core.errors import Trouble
from sylph.core.events import Event
from sylph.core.facts import Asked, TurnEnded
from sylph.core.messages import Usage
from sylph.engine.permit import EDIT

GAP = "\n\n"


class Piece(NamedTuple):
    """Something to show at once."""

    text: str = ""
    thought: str = ""


class Reply(Struct):
    """What is said until the turn ends or somebody is asked. `shown` is what has gone out of it."""

    texts: list[str] = field(default_factory=list[str])
    shown: str = ""
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"
    asked: Asked | None = None
    seq: int = 0
    """The last fact of it, once it is whole."""
    at: int = 0

    @property
    def text(self) -> str:
        return GAP.join([*self.texts, *([question(self.asked)] if self.asked else [])])


class Tale(Struct, kw_only=True):
    """A turn, from the message that it answers."""

    session: str
    input: str
    turn: str = ""
    model: str = ""
    mode: str = ""
    replies: list[Reply] = field(default_factory=lambda: [Reply()])
    round: str = ""
    """What was shown of the answer that the model is giving now."""
    ended: TurnEnded | None = None
    end: int = 0
    created: int = 0
    lost: Trouble | None = None
    """Why it will never end: the store failed, or the message was taken back."""

    @property
    def over(self) -> bool:
        return bool(self.ended or self.lost)

    def whole(self, number: int) -> bool:
        """Whether nothing is added to this reply any more."""
        return self.over or len(self.replies) > number + 1

    def see(self, event: Event) -> Piece | None:
        """Takes note of an event; returns what a client is shown of it."""
        match event.body:
            case facts.InputReceived(id=self.input):
                self.created = event.ts
            case facts.TurnStarted(input=self.input) | facts.InputDelivered(id=self.input):
                self.turn = event.turn
            case facts.InputCancelled(id=self.input):
                self.lost = Trouble("cancelled", "The message was taken back.")
            case signals.SessionFailed(trouble=trouble):
                self.lost = trouble
            case _ if self.turn and event.turn == self.turn:
                return self._within(event)
            case _:
                pass
        return None

    def _within(self, event: Event) -> Piece | None:
        reply = self.replies[-1]
        match event.body:
            case signals.TextDelta(text=text):
                begins, self.round = not self.round, self.round + text
                return self._show(reply, text, begins=begins)
            case signals.ReasoningDelta(text=text):
                return Piece(thought=text)
            case facts.ModelResponded() as body:
                reply.usage = reply.usage + body.usage
                return self._answered(reply, body) if body.role == "main" else None
            case facts.ModelFailed(usage=Usage() as usage):
                reply.usage = reply.usage + usage
            case facts.Asked() as asked:
                reply.asked, reply.seq, reply.at = asked, event.seq, event.ts
                self.replies.append(Reply())
                return self._show(reply, question(asked), begins=True)
            case facts.TurnEnded() as ended:
                self.ended, self.end = ended, event.seq
                reply.seq, reply.at = event.seq, event.ts
            case _:
                pass
        return None

    def _answered(self, reply: Reply, body: facts.ModelResponded) -> Piece | None:
        """Shows what the signals left out: they may be dropped, facts never are."""
        shown, self.round = self.round, ""
        self.model, reply.finish = body.model, body.finish
        if not body.text:
            return None
        reply.texts.append(body.text)
        if not shown:
            return self._show(reply, body.text, begins=True)
        return self._show(reply, body.text[len(shown) :], begins=False) if body.text.startswith(shown) else None

    def _show(self, reply: Reply, text: str, *, begins: bool) -> Piece | None:
        if not text:
            return None
        lead = GAP if begins and reply.shown else ""
        reply.shown += lead + text
        return Piece(text=lead + text)


def question(asked: Asked) -> str:
    """How somebody who only chats is asked."""
    choices = [each for each in asked.choices if each != EDIT]
    detail = f"\n\n```\n{asked.detail.strip()}\n```" if asked.detail.strip() else ""
    how = f"Answer with one of: {', '.join(choices)}." if choices else "Answer with your next message."
    more = " Anything else is taken for a no." if asked.kind == "approval" else ""
    return f"**Sylph asks:** {asked.question}{detail}\n\n{how}{more}"


def tell(tale: Tale, events: Iterable[Event]) -> Tale:
    for event in events:
        tale.see(event)
    return tale
