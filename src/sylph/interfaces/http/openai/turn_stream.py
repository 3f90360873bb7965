"""One turn as such a client sees it: a fold into replies, each of which ends with the turn or with a question."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from sylph.core import facts, signals
from sylph.core.errors import ErrorReport
from sylph.core.events import Event
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import TurnEnded
from sylph.core.messages import Usage
from sylph.engine.calls.permission import EDIT

PARAGRAPH_GAP = "\n\n"


class ReplyPiece(NamedTuple):
    """Something to show at once."""

    text: str = ""
    thought: str = ""


class TurnReply(Struct):
    """What is said until the turn ends or somebody is asked. `shown` is what has gone out of it."""

    texts: list[str] = field(default_factory=list[str])
    sent_text: str = ""
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"
    asked: Asked | None = None
    seq: int = 0
    """The last fact of it, once it is whole."""
    at: int = 0

    @property
    def text(self) -> str:
        return PARAGRAPH_GAP.join([*self.texts, *([format_question(self.asked)] if self.asked else [])])


class TurnStream(Struct, kw_only=True):
    """A turn, from the message that it answers."""

    session: str
    input: str
    turn: str = ""
    model: str = ""
    mode: str = ""
    replies: list[TurnReply] = field(default_factory=lambda: [TurnReply()])
    round_text: str = ""
    """What was shown of the answer that the model is giving now."""
    ended: TurnEnded | None = None
    end_seq: int = 0
    created: int = 0
    failure: ErrorReport | None = None
    """Why it will never end: the store failed, or the message was taken back."""

    @property
    def is_over(self) -> bool:
        return bool(self.ended or self.failure)

    def is_complete(self, number: int) -> bool:
        """Whether nothing is added to this reply any more."""
        return self.is_over or len(self.replies) > number + 1

    def apply_event(self, event: Event) -> ReplyPiece | None:
        """Takes note of an event; returns what a client is shown of it."""
        match event.body:
            case facts.InputReceived(id=self.input):
                self.created = event.ts
            case facts.TurnStarted(input=self.input) | facts.InputDelivered(id=self.input):
                self.turn = event.turn
            case facts.InputCancelled(id=self.input):
                self.failure = ErrorReport("cancelled", "The message was taken back.")
            case signals.SessionFailed(trouble=trouble):
                self.failure = trouble
            case _ if self.turn and event.turn == self.turn:
                return self._apply_turn_event(event)
            case _:
                pass
        return None

    def _apply_turn_event(self, event: Event) -> ReplyPiece | None:
        reply = self.replies[-1]
        match event.body:
            case signals.TextDelta(text=text):
                begins, self.round_text = not self.round_text, self.round_text + text
                return self._add_text(reply, text, begins=begins)
            case signals.ReasoningDelta(text=text):
                return ReplyPiece(thought=text)
            case facts.ModelResponded() as body:
                reply.usage = reply.usage + body.usage
                return self._add_answer(reply, body) if body.role == "main" else None
            case facts.ModelFailed(usage=Usage() as usage):
                reply.usage = reply.usage + usage
            case facts.Asked() as asked:
                reply.asked, reply.seq, reply.at = asked, event.seq, event.ts
                self.replies.append(TurnReply())
                return self._add_text(reply, format_question(asked), begins=True)
            case facts.TurnEnded() as ended:
                self.ended, self.end_seq = ended, event.seq
                reply.seq, reply.at = event.seq, event.ts
            case _:
                pass
        return None

    def _add_answer(self, reply: TurnReply, body: facts.ModelResponded) -> ReplyPiece | None:
        """Shows what the signals left out: they may be dropped, facts never are."""
        shown, self.round_text = self.round_text, ""
        self.model, reply.finish = body.model, body.finish
        if not body.text:
            return None
        reply.texts.append(body.text)
        if not shown:
            return self._add_text(reply, body.text, begins=True)
        return self._add_text(reply, body.text[len(shown) :], begins=False) if body.text.startswith(shown) else None

    def _add_text(self, reply: TurnReply, text: str, *, begins: bool) -> ReplyPiece | None:
        if not text:
            return None
        lead = PARAGRAPH_GAP if begins and reply.sent_text else ""
        reply.sent_text += lead + text
        return ReplyPiece(text=lead + text)


def format_question(asked: Asked) -> str:
    """How somebody who only chats is asked."""
    choices = [each for each in asked.choices if each != EDIT]
    detail = f"\n\n```\n{asked.detail.strip()}\n```" if asked.detail.strip() else ""
    how = f"Answer with one of: {', '.join(choices)}." if choices else "Answer with your next message."
    more = " Anything else is taken for a no." if asked.kind == "approval" else ""
    return f"**Sylph asks:** {asked.question}{detail}\n\n{how}{more}"


def apply_events(tale: TurnStream, events: Iterable[Event]) -> TurnStream:
    for event in events:
        tale.apply_event(event)
    return tale
