"""Logs that could have happened: a walk through the life of a session, one fact after the other."""

from collections.abc import Sequence

from hypothesis import strategies as st

from sylph.core import facts
from sylph.core.events import Event, Fact
from sylph.core.facts.turn import InputDelivery
from sylph.core.messages import Usage
from sylph.engine.folds.history import HISTORY_FOLD, ConversationHistory, rebuild_history
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.turn import compaction

Move = tuple[str, int]
moves = st.lists(
    st.tuples(
        st.sampled_from(
            ["send", "start", "note", "answer", "result", "steer", "end", "rewind", "squeeze", "ask", "decide", "fork"]
        ),
        st.integers(0, 5),
    ),
    max_size=60,
)


class Life:
    """Makes one fact per move if the move makes sense there, and nothing if it does not."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.summary, self.history = SessionState(), ConversationHistory()
        self.starts: list[int] = []
        self.write(facts.SessionCreated(workspace="/w", model="m/m", mode="ask"))

    def write(self, fact: Fact, *, turn: str = "") -> None:
        event = Event(
            session="s", seq=len(self.events) + 1, ts=len(self.events), body=fact, turn=turn or self.summary.open_turn
        )
        self.events.append(event)
        SESSION_FOLD.step(self.summary, event)
        HISTORY_FOLD.step(self.history, event)

    def live(self, walk: Sequence[Move]) -> "Life":
        for name, number in walk:
            getattr(self, f"_{name}")(number)
        return self

    def _send(self, number: int) -> None:
        delivery: InputDelivery = "follow" if number == 1 else "start"
        text = f"message {self.summary.inputs} " * (number + 1)
        self.write(facts.InputReceived(id=f"i{self.summary.inputs + 1}", text=text, delivery=delivery))

    def _start(self, _: int) -> None:
        if self.summary.queue and not self.summary.open_turn:
            self.starts.append(len(self.events) + 1)
            self.write(facts.TurnStarted(input=next(iter(self.summary.queue))), turn=f"t{self.summary.turns + 1}")

    def _note(self, number: int) -> None:
        if not self.summary.open_calls:
            self.write(facts.ContextAdded(topic=f"topic {number}", text="note " * number))

    def _answer(self, number: int) -> None:
        if self.summary.open_turn and not self.summary.open_calls:
            usage = Usage(100, 10) if number % 2 else Usage()
            self.write(facts.ModelResponded(model="m/m", text="answer " * 20, finish="stop", usage=usage))
            for _ in range(number):
                call = f"{self.summary.open_turn}_c{self.summary.calls + 1}"
                self.write(facts.ToolCalled(call=call, name="look", arguments="{}"))

    def _decide(self, number: int) -> None:
        for call in list(self.summary.open_calls)[:number]:
            digest = facts.ToolDecided(call=call, decision="allow", reason="", by="user", effect="read", risk="safe")
            self.write(digest)
            self.write(facts.ToolStarted(call=call, effect="read", recourse="pure"))

    def _result(self, number: int) -> None:
        if calls := list(self.summary.open_calls):
            self.write(facts.ToolFinished(call=calls[number % len(calls)], ok=True, output="result " * number))

    def _ask(self, number: int) -> None:
        if self.summary.open_turn:
            id = f"{self.summary.open_turn}_q{self.summary.questions + 1}"
            self.write(facts.Asked(id=id, kind="question", question=f"{number}?"))
            if number % 2:
                self.write(facts.Answered(id=id, answer="yes"))

    def _steer(self, _: int) -> None:
        if self.summary.open_turn and not self.summary.open_calls:
            for id in [id for id in self.summary.queue if id not in self.summary.follows]:
                self.write(facts.InputDelivered(id=id))

    def _end(self, _: int) -> None:
        if self.summary.open_turn:
            for call in list(self.summary.open_calls):
                self.write(facts.ToolFinished(call=call, ok=False, output="cut off"))
            self.write(facts.TurnEnded(outcome="finished"))

    def _fork(self, number: int) -> None:
        if number == 0:
            self.write(facts.SessionForked(parent="p", at=len(self.events), root="p"))
            if self.summary.open_turn:
                self.write(facts.TurnEnded(outcome="interrupted"))

    def _rewind(self, number: int) -> None:
        if self.starts and not self.summary.open_turn:
            self.write(facts.HistoryRewound(to=self.starts[number % len(self.starts)]))
            if self.history.lost:
                self.history = rebuilt(self.events)

    def _squeeze(self, number: int) -> None:
        cut = compaction.choose_range(self.history, 10 * number, compaction.CompactionLimits())
        if cut and not self.summary.open_calls:
            words = tuple(entry.message.text for entry in cut.old if entry.kind == "input")
            self.write(
                facts.CompactionMade(
                    upto=cut.upto, summary="…", words=(*self.history.words, *words), ledger=(), why="x",
                    chunks=1, messages=len(cut.old), tokens_before=10, tokens_after=1,
                )
            )  # fmt: skip


def rebuilt(events: Sequence[Event]) -> ConversationHistory:
    return rebuild_history(lambda after, limit: list(events[after : after + limit]), len(events))
